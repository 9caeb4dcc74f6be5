// SPDX-License-Identifier: Apache-2.0
//
// config.json: as the engine reads it, and as the shim looks for a group in it.
#include <linux/capability.h>

#include <cstdlib>
#include <string>

#include <gantry/toolkit/oci/spec.h>

#include "core/shim/group.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

void RequireChecked(const oci::ProcessSpec& process) {
  constexpr uint64_t kCapabilities = (uint64_t{1} << (CAP_LAST_CAP + 1)) - 1;
  if (const auto& sets = process.capabilities) {
    Require(
        ((sets->bounding | sets->effective | sets->inheritable | sets->permitted | sets->ambient) &
         ~kCapabilities) == 0,
        "capabilities are those of the kernel");
  }
  for (const oci::Rlimit& limit : process.rlimits) {
    Require(limit.soft <= limit.hard, "a soft limit is not above the hard one");
  }
  Require(std::abs(process.oom_score_adj.value_or(0)) <= 1000, "an OOM score is within bounds");
}

void RequireChecked(const oci::LinuxSpec& part) {
  for (const oci::Device& device : part.devices) {
    Require(device.path.starts_with('/') && (device.mode & ~07777U) == 0, "a device is checked");
  }
  for (const IdMapping& mapping : part.uid_mappings) {
    Require(mapping.length > 0, "a mapping has ids");
  }
  for (const auto& [clock, offset] : part.time_offsets) {
    Require(offset.nanoseconds < 1'000'000'000, "nanoseconds are a part of a second");
  }
  if (part.seccomp) {
    Require(!part.seccomp->default_action.empty(), "a filter has a default");
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const std::string group = shim::GroupOf(input);
  Require(group.size() <= input.size(), "a group is a part of the text");
  const Result<oci::Spec> spec = oci::ParseSpec(std::string(input), "config.json");
  if (!spec) {
    Require(spec.error().code == Code::kInvalidArgument, "what is wrong is the caller's fault");
    return;
  }
  Require(!spec->process.args.empty() && !spec->process.args.front().empty(),
          "a process has a program");
  Require(spec->json == input, "the text is passed on as it is");
  Require(spec->RootPath("/b").starts_with('/'), "the root is absolute");
  RequireChecked(spec->process);
  RequireChecked(spec->linux_spec);
}

}  // namespace gantry::fuzz
