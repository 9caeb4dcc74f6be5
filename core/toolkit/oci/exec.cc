// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <gantry/toolkit/oci/exec.h>

namespace gantry::oci {

Result<ProcessSpec> ParseExec(std::string process_json, const Spec& container) {
  GANTRY_TRY(ProcessSpec exec, ParseProcess(std::move(process_json)));
  const ProcessSpec& of = container.process;
  if (!exec.capabilities) {
    exec.capabilities = of.capabilities.value_or(Capabilities());
  }
  exec.no_new_privileges = exec.no_new_privileges || of.no_new_privileges;
  if (exec.apparmor_profile.empty()) {
    exec.apparmor_profile = of.apparmor_profile;
  }
  if (exec.selinux_label.empty()) {
    exec.selinux_label = of.selinux_label;
  }
  if (exec.rlimits.empty()) {
    exec.rlimits = of.rlimits;
  }
  if (!exec.oom_score_adj) {
    exec.oom_score_adj = of.oom_score_adj;
  }
  return exec;
}

}  // namespace gantry::oci
