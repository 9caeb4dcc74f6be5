// SPDX-License-Identifier: Apache-2.0
//
// The seam at which exceptions out of plugins end. The interface has none, but
// a plugin is someone else's code and may use libraries that throw.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gantry/error.h>

namespace gantry::plugin {

/// Calls `function`, which gives a `Result`; an exception becomes kInternal
/// `backend '<name>' threw: <what>`.
template <class Function>
std::invoke_result_t<Function> GuardedCall(std::string_view backend, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::exception& e) {
    return Fail(Code::kInternal, "backend '{}' threw: {}", backend, e.what());
  } catch (...) {
    return Fail(Code::kInternal, "backend '{}' threw something that is no std::exception", backend);
  }
}

}  // namespace gantry::plugin
