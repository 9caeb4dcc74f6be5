// SPDX-License-Identifier: Apache-2.0
//
// An exec, with what it has of its container: its `process` object alone, run as it stands, would
// be root with all capabilities where it names none.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::oci {

/// `process_json` of an `ExecRequest`. What confines the container and is left out there is the
/// container's: capabilities (none, where the container's are left out too), no_new_privileges,
/// which an exec cannot take back, the AppArmor profile, the SELinux label, limits, oom_score_adj.
/// Whom it runs as, its environment and its folder are its own. Its seccomp filter is the
/// container's, `container.linux_spec.seccomp`: a process object has none. Errors:
/// kInvalidArgument, as `ParseProcess`. Thread: any. Blocks: never.
Result<ProcessSpec> ParseExec(std::string process_json, const Spec& container);

}  // namespace gantry::oci
