// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl top`: what each sandbox uses, interval by interval.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>

#include "core/ctl/arguments.h"
#include "core/ctl/live.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// Of a pod, or of a container that stands alone.
struct SandboxUse {
  std::string ns;
  std::string id;
  std::string backend;
  std::string state;
  uint32_t containers = 0;
  uint64_t cpu_ns = 0;
  uint64_t memory_bytes = 0;
  uint64_t pids = 0;
  /// Since the look before, in hundredths of one processor; negative: there was none.
  double cpu_percent = -1;
};

/// What was used at one moment.
class UseSamples {
 public:
  /// By CPU, then by memory, most first. `elapsed`: since the call before.
  std::vector<SandboxUse> Next(const v1::ListResponse& list, std::chrono::nanoseconds elapsed);

 private:
  std::map<std::pair<std::string, std::string>, uint64_t> cpu_ns_;
};

std::string UseTable(const std::vector<SandboxUse>& all);
/// One line: an array of objects.
std::string UseJson(const std::vector<SandboxUse>& all);

Status ShowTop(const Arguments& arguments, const Output& output);

}  // namespace gantry::ctl
