// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/exec_target.h"

#include "tests/performance/bundle.h"

namespace gantry::bench {

Result<Phases> ExecTarget::OneExec(const std::vector<std::string>& argv) {
  GANTRY_TRY(const std::string spec, ProcessSpec(lab_.default_spec(), argv));
  const std::string exec_id = "x" + std::to_string(count_++);
  Stdio stdio;
  GANTRY_CHECK_OK(stdio.Make(lab_.bundles() + "/io-" + instance_.id() + exec_id));
  Phases phases;
  GANTRY_CHECK_OK(instance_.Exec(exec_id, spec, stdio, phases));
  return phases;
}

}  // namespace gantry::bench
