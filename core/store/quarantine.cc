// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include "core/store/record.h"

namespace gantry::store {

Result<std::string> Quarantine(const std::string& bundle) {
  const std::string from = PathOf(bundle);
  std::string to = from + ".bad";
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) {
    return FailErrno(error.value(), "rename '{}' to '{}'", from, to);
  }
  return to;
}

}  // namespace gantry::store
