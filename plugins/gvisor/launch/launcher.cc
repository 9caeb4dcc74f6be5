// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/launcher.h"

#include <signal.h>

#include "plugins/gvisor/launch/filestore.h"

namespace gantry::gvisor {

void EndLaunched(const Launch& launch) {
  for (const auto& process : {launch.sentry, launch.gofer.process}) {
    if (process) {
      IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
      IgnoreError(process->Wait(launch.pod.options().timeout),
                  "the sandbox's end kills what is left");
    }
  }
  IgnoreError(RemoveFilestores(FilestorePaths(launch.wanted.spec, launch.pod.id().str())),
              "they go with the snapshot");
}

}  // namespace gantry::gvisor
