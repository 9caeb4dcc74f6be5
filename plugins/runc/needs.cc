// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/needs.h"

#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/process/ask_program.h>

namespace gantry::runc {
namespace {

NodeNeed RuntimeNeed(const Options& options, const cgroup::NodeCgroups& node) {
  NodeNeed need;
  need.what = "an OCI runtime";
  const auto binary = FindRuntime(options, node);
  if (!binary) {
    need.detail = binary.error().message;
    return need;
  }
  const std::string version = AskVersion(*binary);
  need.met = !version.empty();
  need.detail = need.met ? *binary + ": " + version
                         : *binary + ": does not answer '--version'; install it again";
  const auto preferred = FindRuntime(options, {});
  if (preferred && *preferred != *binary) {
    need.detail += "; taken since " + WhyItCannotRun(*preferred, node);
  }
  return need;
}

NodeNeed CgroupNeed(const Options& options, const cgroup::NodeCgroups& node) {
  NodeNeed need;
  need.what = "cgroups";
  need.met = true;
  switch (node.mode) {
    case cgroup::CgroupMode::kNone:
      return {.what = "cgroups",
              .detail = Format("{}: not mounted; mount cgroup2 there", cgroup::kCgroupRoot)};
    case cgroup::CgroupMode::kV1:
      need.detail = "v1";
      break;
    case cgroup::CgroupMode::kV2:
      need.detail = "v2";
      break;
    case cgroup::CgroupMode::kHybrid:
      need.detail = "v1 with v2 beside it";
  }
  const auto binary = FindRuntime(options, node);
  if (const std::string why = binary ? WhyItCannotRun(*binary, node) : ""; !why.empty()) {
    need.met = false;
    need.detail = why;
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

std::vector<NodeNeed> FindNeeds(const Options& options, const cgroup::NodeCgroups& node) {
  return {RuntimeNeed(options, node), CgroupNeed(options, node), CriuNeed(options)};
}

}  // namespace gantry::runc
