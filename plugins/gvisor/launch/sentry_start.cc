// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/sentry_start.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/net/netns.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/create.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/pod/out_of_memory.h"
#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/spec/root_image.h"

namespace gantry::gvisor {
namespace {

/// What sentry and gofer leave in the bundle.
Status RemoveFiles(SandboxContext& context, const std::string& bundle,
                   std::chrono::milliseconds limit) {
  GANTRY_CHECK_OK(RemoveCreated(context, bundle, limit));
  return RemoveFile(bundle + "/" + kSocketName);
}

/// A crash's first words are its reason; they would go with the sandbox.
void SayWhetherItCrashed(Pod& pod) {
  const auto process = pod.process();
  const auto end = process ? process->Ended() : std::nullopt;
  if (!end || end->code() == kKilledStatus) {
    return;
  }
  constexpr size_t kStacks = 256U << 10;
  constexpr size_t kReason = 2048;
  const std::string log = LastBytes(KeptSentryLog(pod.context()), kStacks);
  const size_t at = std::min(log.find("panic: "), log.find("fatal error: "));
  if (at != std::string::npos) {
    pod.context().Log(LogLevel::kError,
                      Format("its sentry has crashed: {}", log.substr(at, kReason)));
  }
}

class Starter {
 public:
  Starter(Pod& pod, SentryRequest wanted) : pod_(pod), wanted_(std::move(wanted)) {}

  Result<GoferProcess> Start() {
    Status started = TryStart();
    if (!started) {
      AddWords(started.error());
      Undo();
      return std::unexpected(started.error());
    }
    return launch_.gofer.process;
  }

 private:
  Status TryStart() {
    GANTRY_CHECK_OK(Prepare());
    GANTRY_CHECK_OK(wanted_.launcher.Start(launch_));
    return Keep();
  }

  /// A sentry whose gofer has ended only says that it has told no mounts; and why it was tried by
  /// another way than others would not be understood.
  void AddWords(Error& error) const {
    const std::string words = LastWords(launch_.gofer.log);
    if (!words.empty() && !error.message.contains(words)) {
      error.message += "; its gofer says: " + words;
    }
    if (!wanted_.launcher.IsDirect()) {
      error.message += "; it was started so because: " + wanted_.launcher.Reason();
    }
  }

  void Undo() {
    EndLaunched(launch_);
    IgnoreError(RemoveFilestores(VolumeFiles(wanted_.spec.volumes, pod_.id().str())),
                "they go with the volumes");
    IgnoreError(RemoveFiles(pod_.context(), wanted_.bundle, pod_.options().timeout),
                "they go with the bundle");
    pod_.context().Drop(kRunscName);
    pod_.context().Drop(kSentryLogName);
    pod_.Have(nullptr, nullptr);
  }

  Status Prepare() {
    const Runsc& runsc = wanted_.launcher.runsc();
    PodRecord& record = launch_.record;
    if (runsc.IsMixed() && pod_.flags().same_release) {
      return Fail(Code::kFailedPrecondition, "use '{}': {}", runsc.runsc.path, WhyMixed(runsc));
    }
    if (!wanted_.spec.HasRootOfGofer() && !wanted_.image) {
      GANTRY_TRY(wanted_.image, OpenRootImage(wanted_.spec.mounts.front().source, pod_.options()));
    }
    if (!wanted_.spec.has_netns && pod_.flags().network == Network::kSandbox) {
      pod_.UseHostNetwork();
    }
    record.root = wanted_.container;
    record.own_id = wanted_.own_id;
    record.socket = wanted_.bundle + "/" + kSocketName;
    record.place = {wanted_.bundle, wanted_.cgroups, {}};
    GANTRY_TRY(record.place.flags, FlagsFor(runsc, pod_.flags(), wanted_.bundle));
    record.runsc = runsc.runsc.path;
    record.asks_for_mounts = runsc.dialect.gofer.contains("rpc-fd");
    record.runs_hooks = runsc.dialect.gofer_runs_hooks;
    record.conf = pod_.flags().ConfJson();
    record.volumes = wanted_.spec.volumes;
    record.host_network = pod_.flags().network == Network::kHost;
    record.no_ipv6 = wanted_.spec.no_ipv6;
    record.netns = wanted_.spec.netns_path;
    record.oom_kills = cgroup::OomKills(wanted_.cgroups);
    // What one of that name has left is nobody's.
    GANTRY_CHECK_OK(RemoveFilestores(VolumeFiles(record.volumes, pod_.id().str())));
    GANTRY_TRY(log_, MakeBoundedLog(kMaxLogBytes));
    const std::array stored = {NamedFd{kRunscName, runsc.runsc.file},
                               NamedFd{kSentryLogName, log_}};
    return pod_.context().StoreAll(stored);
  }

  Status Keep() {
    launch_.record.pid = launch_.sentry->pid().value;
    launch_.record.start_time = launch_.sentry->start_time();
    GANTRY_CHECK_OK(pod_.Change([&](PodRecord& record) { record = launch_.record; }));
    pod_.Have(launch_.sentry, std::make_shared<Sentry>(pod_.context(), launch_.RootId(),
                                                       launch_.record.socket, pod_.StateSaver()));
    return {};
  }

  Pod& pod_;
  SentryRequest wanted_;
  UniqueFd log_;
  Launch launch_{.pod = pod_, .wanted = wanted_, .log = log_};
};

}  // namespace

std::string GoferTag(const std::string& container) { return StoreName("gofer", container); }

Result<std::vector<std::string>> FlagsFor(const Runsc& runsc, const Flags& flags,
                                          const std::string& root) {
  std::vector<std::string> arguments = flags.Arguments();
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(2, argument.find('=') - 2);
    if (!runsc.dialect.global.contains(name)) {
      return Fail(Code::kInvalidArgument, "check option 'runsc_config.{}': '{}' has no such flag",
                  name, runsc.runsc.path);
    }
  }
  arguments.push_back("--root=" + root);
  return arguments;
}

Result<GoferProcess> StartSentry(Pod& pod, SentryRequest wanted) {
  return Starter(pod, std::move(wanted)).Start();
}

Status RemoveSentry(Pod& pod, const GoferProcess& gofer, const std::string& bundle) {
  SandboxContext& context = pod.context();
  const auto limit = std::min<std::chrono::milliseconds>(context.TimeLeft(), pod.options().timeout);
  if (const auto sentry = pod.sentry()) {
    sentry->Hangup();
  }
  KeepWhetherMemoryEndedIt(pod);
  GANTRY_CHECK_OK(EndProcess(pod.process().get(), limit));
  if (pod.record().pid == 0) {
    // An engine before may have come as far, and not have kept it.
    GANTRY_CHECK_OK(EndProcess(context.FindSpawned(kBootTag).get(), limit));
  }
  GANTRY_CHECK_OK(EndProcess(gofer.get(), limit));
  context.Drop(kRunscName);
  const std::string place = pod.record().place.bundle;
  const std::string& files = place.empty() ? bundle : place;
  SayWhetherItCrashed(pod);
  context.Drop(kSentryLogName);
  return RemoveFiles(context, files, limit);
}

}  // namespace gantry::gvisor
