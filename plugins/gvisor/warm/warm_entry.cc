// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/warm/warm_entry.h"

#include <signal.h>
#include <stdio.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/context/lent_context.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/canary.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/own_root.h"
#include "plugins/gvisor/pause/pause_image.h"
#include "plugins/gvisor/warm/warm_folder.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kWarm = "warm";
/// What its root is called, before there is a pod whose name it could have: no container can be
/// called so.
constexpr const char* kRootId = "gantry--root";

class WarmContext : public LentContext {
 public:
  WarmContext(SandboxContext& host, std::string folder, const WarmSpawned& spawned)
      : LentContext(host, kWarm), folder_(std::move(folder)), spawned_(spawned) {}

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    GANTRY_TRY(auto process, LentContext::Spawn(std::move(request)));
    spawned_(process);
    IgnoreError(NoteProcess(folder_, *process), "it is of use only if all is killed at once");
    return process;
  }

 private:
  const std::string folder_;
  const WarmSpawned& spawned_;
};

/// In the pod's place. A socket is the one that was bound wherever its file goes.
Status MoveFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    if (errno == EXDEV) {
      return Fail(Code::kFailedPrecondition,
                  "move '{}' to '{}': another file system; set the option 'root' to a directory on "
                  "that of containerd's bundles",
                  from, to);
    }
    return FailErrno(errno, "move '{}' to '{}'", from, to);
  }
  return {};
}

}  // namespace

Result<WarmEntry> BootWarm(SandboxContext& context, Runscs& runscs, const WarmHandler& handler,
                           const std::string& folder, const WarmSpawned& spawned) {
  const Options& options = handler.options;
  GANTRY_TRY(const std::string binary, FindRunsc(options));
  WarmEntry entry;
  entry.folder = folder;
  GANTRY_TRY(entry.runsc, runscs.GetProven(binary, context, options.root,
                                           {.platform = handler.flags.platform,
                                            .directories = CanaryDirectories(folder, options.root),
                                            .limit = options.timeout}));
  WarmContext lent(context, folder, spawned);
  GANTRY_TRY(SandboxId id, SandboxId::Parse("gantry-warm"));
  Pod pod(std::move(id), Namespace(), lent, options, handler.flags);
  GANTRY_TRY(const Spec spec, MakeOwnRootSpec({}, folder, pod.flags().overlay));
  SentryPlan plan{.runsc = *entry.runsc, .spec = spec, .container = "", .bundle = folder};
  plan.own_id = kRootId;
  GANTRY_TRY(plan.image, PauseImage());
  entry.key = MakeWarmKey(*entry.runsc, handler.flags, {}, {});
  GANTRY_TRY([[maybe_unused]] const GoferProcess none, StartSentry(pod, std::move(plan)));
  entry.process = pod.process();
  entry.log = KeptSentryLog(lent);
  entry.record = pod.record();
  return entry;
}

Status GiveTo(Pod& pod, const WarmEntry& entry, const WarmPlace& place) {
  GANTRY_CHECK_OK(ForgetProcess(entry.folder));
  PodRecord record = entry.record;
  record.socket = Format("{}/{}", place.bundle, kSocketName);
  GANTRY_CHECK_OK(MoveFile(entry.record.socket, record.socket));
  GANTRY_CHECK_OK(RemoveTree(entry.folder));
  record.place.bundle = place.bundle;
  record.place.cgroups = place.cgroups;
  GANTRY_TRY(record.place.flags, FlagsFor(*entry.runsc, pod.flags(), place.bundle));
  record.netns = place.netns;
  const std::array stored = {NamedFd{kRunscName, entry.runsc->runsc.file},
                             NamedFd{kSentryLogName, entry.log}};
  GANTRY_CHECK_OK(pod.context().StoreAll(stored));
  GANTRY_CHECK_OK(pod.Change([&](PodRecord& changed) { changed = record; }));
  pod.Have(entry.process,
           std::make_shared<Sentry>(pod.context(), pod.RootId(), record.socket, pod.StateSaver()));
  return {};
}

void Discard(const WarmEntry& entry) {
  constexpr std::chrono::seconds kLimit{1};
  IgnoreError(entry.process->Signal(SIGKILL), "it may have ended by itself");
  IgnoreError(entry.process->Wait(kLimit), "it has been killed");
  IgnoreError(RemoveTree(entry.folder), "it goes with the others'");
}

}  // namespace gantry::gvisor
