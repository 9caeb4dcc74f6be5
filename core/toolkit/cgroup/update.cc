// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/cgroup/update.h"

#include <cerrno>

#include <gantry/toolkit/files/files.h>

namespace gantry::cgroup {

Status SetCgroupValue(const std::string& file, const std::string& value, bool optional) {
  Status written = WriteExisting(file, value);
  if (written) {
    return written;
  }
  Error error = std::move(written).error();
  if (optional && error.code == Code::kNotFound) {
    return {};
  }
  if (error.sys_errno == EINVAL || error.sys_errno == ERANGE) {
    error.code = Code::kInvalidArgument;
  }
  return std::unexpected(std::move(error).Within("set '" + value + "'"));
}

std::string LimitText(int64_t limit, bool v2) {
  if (limit < 0) {
    return v2 ? "max" : "-1";
  }
  return std::to_string(limit);
}

bool IsRefusal(const Status& status) {
  return !status && status.error().code == Code::kInvalidArgument;
}

}  // namespace gantry::cgroup
