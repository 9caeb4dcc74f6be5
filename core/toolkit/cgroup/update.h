// SPDX-License-Identifier: Apache-2.0
//
// Writing limits into a cgroup's files, with the rules that v1 and v2 share.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::cgroup {

/// Writes `value` to `file`. A file that is absent is an error only when the
/// value limits something (`optional` false): the kernel was built without, and
/// then there is nothing to lift either.
/// Errors: kInvalidArgument where the kernel refuses the value; kNotFound.
Status SetCgroupValue(const std::string& file, const std::string& value, bool optional = false);

/// "max" (v2) or "-1" (v1) for what is negative.
std::string LimitText(int64_t limit, bool v2);

/// Whether a call failed because the kernel does not take the value now: it
/// contradicts another one that is still the old.
bool IsRefusal(const Status& status);

}  // namespace gantry::cgroup
