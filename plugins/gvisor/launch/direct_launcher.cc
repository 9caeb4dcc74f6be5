// SPDX-License-Identifier: Apache-2.0
//
// gantry starts gofer and sentry itself, by runsc's internal commands.
#include <utility>

#include <gantry/toolkit/net/netns.h>

#include "plugins/gvisor/launch/boot.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/launcher.h"
#include "plugins/gvisor/launch/sentry_start.h"

namespace gantry::gvisor {
namespace {

/// The files of both begin with the same time.
LogOwner LogOwnerOf(const Launch& launch, std::string container) {
  return {launch.pod.id().str(), std::move(container), launch.begun};
}

GoferRequest GoferRequestOf(const Launch& launch) {
  return {.place = launch.record.place,
          .spec = launch.wanted.spec,
          .program = launch.wanted.launcher.runsc().runsc.file,
          .asks_for_mounts = launch.record.asks_for_mounts,
          .id = launch.RootId(),
          .logs = launch.pod.flags().logs,
          .log_owner = LogOwnerOf(launch, launch.RootId()),
          .tag = GoferTag(launch.wanted.container)};
}

/// What serves each mount: the image, or a gofer's connection.
Result<std::vector<UniqueFd>> TakeFiles(Launch& launch) {
  std::vector<UniqueFd> files;
  size_t next = 0;
  for (const FileMount& mount : launch.wanted.spec.mounts) {
    if (mount.conf.lower == MountConf::Lower::kNone) {
      continue;
    }
    if (mount.conf.lower == MountConf::Lower::kGofer) {
      files.push_back(std::move(launch.gofer.connections[next++]));
    } else if (launch.wanted.image) {
      GANTRY_TRY(UniqueFd image, launch.wanted.image.Duplicate());
      files.push_back(std::move(image));
    } else {
      return Fail(Code::kInternal, "boot: its image '{}' is not open", mount.source);
    }
  }
  return files;
}

Result<BootRequest> BootRequestOf(Launch& launch, std::vector<UniqueFd> filestores) {
  const Runsc& runsc = launch.wanted.launcher.runsc();
  const Flags& flags = launch.pod.flags();
  const Spec& spec = launch.wanted.spec;
  BootRequest boot{.place = launch.record.place,
                   .spec = spec,
                   .program = runsc.sentry_file(),
                   .flags = flags,
                   .log = launch.log,
                   .id = launch.RootId(),
                   .log_owner = LogOwnerOf(launch, launch.pod.id().str()),
                   .socket = launch.record.socket,
                   .tag = kBootTag};
  boot.environment = ReleaseEnvironment(runsc, flags.same_release);
  GANTRY_TRY(boot.files, TakeFiles(launch));
  boot.filestores = std::move(filestores);
  boot.mounts = std::move(launch.gofer.mounts);
  for (size_t i = 0; i < launch.wanted.stdio.size(); ++i) {
    if (launch.wanted.stdio[i]) {
      GANTRY_TRY(boot.stdio[i], launch.wanted.stdio[i].Duplicate());
    }
  }
  boot.terminal = launch.wanted.terminal;
  boot.node_network = flags.network == Network::kHost && !spec.has_netns;
  if (flags.network != Network::kNone && !spec.netns_path.empty()) {
    const std::string& path = spec.netns_path;
    GANTRY_TRY(boot.netns, net::About("open the network namespace", path, net::OpenNetns(path)));
  }
  return boot;
}

Status StartProcesses(Launch& launch) {
  GANTRY_TRY(auto filestores,
             MakeFilestores(launch.wanted.spec, launch.pod.flags().overlay, launch.pod.id().str()));
  const GoferRequest gofer_request = GoferRequestOf(launch);
  if (launch.wanted.spec.NeedsGofer()) {
    GANTRY_TRY(launch.gofer, StartGofer(launch.pod.context(), gofer_request));
  }
  GANTRY_TRY(BootRequest boot_request, BootRequestOf(launch, std::move(filestores)));
  GANTRY_TRY(const Boot boot, StartBoot(launch.pod.context(), std::move(boot_request)));
  launch.sentry = boot.process;
  if (launch.gofer.process) {
    GANTRY_CHECK_OK(AnswerQuestions(launch.gofer, gofer_request, launch.pod.StepDeadline()));
  }
  return AwaitBoot(boot, launch.log, launch.pod.StepDeadline());
}

}  // namespace

/// Now and then a sentry finds something busy while it makes its own root, and ends. Nothing of
/// the pod has run by then, and a second one does not. Source: google/gvisor #10965.
Status DirectLauncher::Start(Launch& launch) const {
  Status started = StartProcesses(launch);
  // In Go's words.
  if (started || !started.error().message.contains("device or resource busy")) {
    return started;
  }
  launch.pod.context().Count("boots_again");
  launch.pod.context().Log(LogLevel::kWarning,
                           started.error().message + "; another one is booted, once");
  EndLaunched(launch);
  launch.gofer = {};
  launch.sentry = nullptr;
  return StartProcesses(launch);
}

}  // namespace gantry::gvisor
