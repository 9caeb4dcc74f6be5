// SPDX-License-Identifier: Apache-2.0
//
// `runsc create` starts gofer and sentry (create.h).
#include <utility>

#include "plugins/gvisor/launch/create.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/launcher.h"

namespace gantry::gvisor {

Status CreateLauncher::Start(Launch& launch) const {
  launch.record.by_create = true;
  SentryPlan& plan = launch.plan;
  // The command makes them itself, where there is none.
  GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(plan.spec, launch.pod.id().str())));
  CreatePlan create{.runsc = runsc(),
                    .spec = plan.spec,
                    .flags = launch.pod.flags(),
                    .id = launch.RootId(),
                    .bundle = plan.bundle,
                    .log = launch.log,
                    .cgroups = plan.cgroups,
                    .stdio = std::move(plan.stdio),
                    .image = std::move(plan.image)};
  SandboxContext& context = launch.pod.context();
  GANTRY_TRY(Created created, RunCreate(context, std::move(create), launch.pod.StepDeadline()));
  launch.sentry = std::move(created.sentry);
  launch.gofer.process = std::move(created.gofer);
  launch.record.socket = std::move(created.socket);
  if (launch.gofer.process) {
    launch.record.gofer_pid = launch.gofer.process->pid().value;
    launch.record.gofer_start_time = launch.gofer.process->start_time();
  }
  return {};
}

}  // namespace gantry::gvisor
