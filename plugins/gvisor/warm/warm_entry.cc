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
#include "plugins/gvisor/pause/pause_image.h"
#include "plugins/gvisor/pod/own_root.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kWarm = "warm";
/// What its root is called, before there is a pod whose name it could have: no container can be
/// called so.
constexpr const char* kRootId = "gantry--root";

class WarmContext : public LentContext {
 public:
  WarmContext(SandboxContext& host, const PoolMaker::Spawned& spawned)
      : LentContext(host, kWarm), spawned_(spawned) {}

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    GANTRY_TRY(auto process, LentContext::Spawn(std::move(request)));
    spawned_(process);
    return process;
  }

 private:
  const PoolMaker::Spawned& spawned_;
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

std::string WarmEntry::LastWords() const { return gvisor::LastWords(log); }

const WarmEntry& WarmEntryOf(const PooledProcess& one) {
  return static_cast<const WarmEntry&>(one);
}

std::shared_ptr<ProcessPool> MakeWarmPool(SandboxContext& context,
                                          std::vector<WarmHandler> handlers,
                                          const std::shared_ptr<RunscRegistry>& runscs) {
  std::vector<PoolHandler> pooled;
  pooled.reserve(handlers.size());
  for (const WarmHandler& handler : handlers) {
    pooled.push_back({handler.name, handler.options.warm, handler.options.root});
  }
  const auto all = std::make_shared<const std::vector<WarmHandler>>(std::move(handlers));
  PoolMaker maker;
  maker.make = [&context, runscs, all](
                   size_t handler, const std::string& folder,
                   const PoolMaker::Spawned& spawned) -> Result<std::unique_ptr<PooledProcess>> {
    GANTRY_TRY(WarmEntry entry, BootWarm(context, *runscs, all->at(handler), folder, spawned));
    return std::make_unique<WarmEntry>(std::move(entry));
  };
  maker.build = [runscs, all](size_t handler) -> Result<std::string> {
    GANTRY_TRY(const std::string binary, FindRunsc(all->at(handler).options));
    GANTRY_TRY(const auto runsc, runscs->Get(binary));
    return BuildOf(*runsc);
  };
  return std::make_shared<ProcessPool>(context, std::move(pooled), std::move(maker));
}

Result<WarmEntry> BootWarm(SandboxContext& context, RunscRegistry& runscs,
                           const WarmHandler& handler, const std::string& folder,
                           const PoolMaker::Spawned& spawned) {
  const Options& options = handler.options;
  GANTRY_TRY(const std::string binary, FindRunsc(options));
  WarmEntry entry;
  entry.folder = folder;
  GANTRY_TRY(entry.runsc, runscs.GetProven(binary, context, options.root,
                                           {.platform = handler.flags.platform,
                                            .directories = CanaryDirectories(folder, options.root),
                                            .limit = options.timeout}));
  WarmContext lent(context, spawned);
  GANTRY_TRY(SandboxId id, SandboxId::Parse("gantry-warm"));
  Pod pod(std::move(id), Namespace(), lent, options, handler.flags, ContainerKind::kOwnRoot);
  GANTRY_TRY(const Spec spec, MakeOwnRootSpec({}, folder, pod.flags().overlay));
  const DirectLauncher launcher(entry.runsc);
  SentryRequest wanted{.launcher = launcher, .spec = spec, .container = "", .bundle = folder};
  wanted.own_id = kRootId;
  GANTRY_TRY(wanted.image, PauseImage());
  entry.key = MakeWarmKey(*entry.runsc, handler.flags, {}, {});
  entry.build = entry.key.build;
  GANTRY_TRY([[maybe_unused]] const GoferProcess none, StartSentry(pod, std::move(wanted)));
  entry.process = pod.process();
  entry.log = KeptSentryLog(lent);
  entry.record = pod.record();
  return entry;
}

Status GiveTo(Pod& pod, const WarmEntry& entry, const WarmPlace& place) {
  GANTRY_CHECK_OK(HandOver(entry));
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

}  // namespace gantry::gvisor
