// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/needs.h"

#include <string_view>

#include <gantry/ask_program.h>
#include <gantry/files.h>

namespace gantry::runc {
namespace {

constexpr size_t kMaxVersionBytes = 4096;

NodeNeed RuntimeNeed(const Options& options) {
  NodeNeed need;
  need.what = "an OCI runtime";
  const auto binary = FindRuntime(options);
  if (!binary) {
    need.detail = binary.error().message;
    return need;
  }
  const std::string version = AskVersion(*binary);
  need.met = !version.empty();
  need.detail = need.met ? *binary + ": " + version
                         : *binary + ": does not answer '--version'; install it again";
  return need;
}

NodeNeed CgroupNeed(const Options& options, const std::string& root) {
  NodeNeed need;
  need.what = "cgroups";
  need.met = true;
  const CgroupMode mode = DetectCgroups(root);
  switch (mode) {
    case CgroupMode::kNone:
      return {.what = "cgroups", .detail = root + ": not mounted; mount cgroup2 there"};
    case CgroupMode::kV1:
      need.detail = "v1";
      return need;
    case CgroupMode::kV2:
      need.detail = "v2";
      return need;
    case CgroupMode::kHybrid:
      need.detail = "v1 with v2 beside it";
  }
  const auto binary = FindRuntime(options);
  const auto left = ReadFile(root + "/unified/cgroup.controllers", kMaxVersionBytes);
  if (binary && binary->ends_with("/crun") && left && left->size() > 1) {
    need.detail +=
        "; crun may refuse this while v2 has controllers: " + left->substr(0, left->find('\n')) +
        " (mount them as v1, or use runc)";
  }
  return need;
}

NodeNeed CriuNeed(const Options& options) {
  const auto criu = FindCriu(options);
  return {.what = "criu, for checkpoint and restore",
          .met = criu.has_value(),
          .optional = true,
          .detail = criu ? *criu : criu.error().message};
}

}  // namespace

std::string AskVersion(const std::string& binary) {
  const std::string text = AskProgram({.program = binary, .arguments = {"--version"}}).value_or("");
  return text.substr(0, text.find('\n'));
}

std::vector<NodeNeed> FindNeeds(const Options& options, const std::string& cgroup_root) {
  return {RuntimeNeed(options), CgroupNeed(options, cgroup_root), CriuNeed(options)};
}

}  // namespace gantry::runc
