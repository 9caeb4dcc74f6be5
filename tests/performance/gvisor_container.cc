// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_container.h"

namespace gantry::bench {

Status GvisorContainer::Prepare(const std::string& pod, bool is_image) {
  return bundle_.Make(lab_, {.id = id_, .pod = pod.empty() ? id_ : pod, .is_image = is_image});
}

Status GvisorContainer::Run(const std::string& pod, bool is_image) {
  Phases untimed;
  GANTRY_CHECK_OK(Prepare(pod, is_image));
  GANTRY_CHECK_OK(Create(untimed));
  return Start(untimed);
}

Status GvisorContainer::End() {
  Phases untimed;
  return End(untimed);
}

Status GvisorPods::Run() {
  GANTRY_CHECK_OK(ours->Run());
  return peer->Run();
}

Status GvisorPods::End() {
  GANTRY_CHECK_OK(ours->End());
  return peer->End();
}

}  // namespace gantry::bench
