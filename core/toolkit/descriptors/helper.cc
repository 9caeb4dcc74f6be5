// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry {

Result<UniqueFd> OpenCarried(std::span<const CarriedProgram> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &CarriedProgram::name);
  if (found == all.end()) {
    return Fail(Code::kNotFound, "open the helper '{}': the plugin was built without it (HELPERS)",
                name);
  }
  // Guards `sealed`; for as long as a copy is made.
  static std::mutex mutex;
  static std::map<const char*, UniqueFd> sealed;
  const std::lock_guard lock(mutex);
  UniqueFd& one = sealed[found->begin];
  if (!one) {
    GANTRY_TRY(one, SealedMemfd(std::string(name), {found->begin, found->end}, MemfdUse::kExecute));
  }
  return one.Duplicate();
}

}  // namespace gantry
