// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/sentry_start.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/net/netns.h>

#include "plugins/gvisor/launch/boot.h"
#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/create.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/gofer.h"
#include "plugins/gvisor/out_of_memory.h"
#include "plugins/gvisor/root_image.h"
#include "plugins/gvisor/sentry/durable_call.h"

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
  Starter(Pod& pod, SentryPlan plan) : pod_(pod), plan_(std::move(plan)) {}

  Result<GoferProcess> Start() {
    Status started = TryStart();
    if (!started) {
      AddWords(started.error());
      AddReason(started.error());
      Undo();
      return std::unexpected(started.error());
    }
    return gofer_.process;
  }

 private:
  Status TryStart() {
    GANTRY_CHECK_OK(Prepare());
    GANTRY_CHECK_OK(record_.by_create ? StartByCreate() : StartDirectly());
    return Keep();
  }

  /// Now and then a sentry finds something busy while it makes its own root, and ends. Nothing of
  /// the pod has run by then, and a second one does not. Source: google/gvisor #10965.
  Status StartDirectly() {
    Status started = StartProcesses();
    // In Go's words.
    if (started || !started.error().message.contains("device or resource busy")) {
      return started;
    }
    pod_.context().Count("boots_again");
    pod_.context().Log(LogLevel::kWarning,
                       started.error().message + "; another one is booted, once");
    EndProcesses();
    gofer_ = {};
    boot_ = {};
    return StartProcesses();
  }

  Status StartProcesses() {
    GANTRY_TRY(auto filestores, MakeFilestores(plan_.spec, pod_.flags().overlay, pod_.id().str()));
    const GoferPlan gofer_plan = PlanGofer();
    if (plan_.spec.NeedsGofer()) {
      GANTRY_TRY(gofer_, StartGofer(pod_.context(), gofer_plan));
    }
    GANTRY_TRY(BootPlan boot_plan, PlanBoot(std::move(filestores)));
    GANTRY_TRY(boot_, StartBoot(pod_.context(), std::move(boot_plan)));
    if (gofer_.process) {
      GANTRY_CHECK_OK(AnswerQuestions(gofer_, gofer_plan, pod_.StepDeadline()));
    }
    return AwaitBoot(boot_, log_, pod_.StepDeadline());
  }

  Status StartByCreate() {
    // The command makes them itself, where there is none.
    GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(plan_.spec, pod_.id().str())));
    CreatePlan create{.runsc = plan_.runsc,
                      .spec = plan_.spec,
                      .flags = pod_.flags(),
                      .id = RootId(),
                      .bundle = plan_.bundle,
                      .log = log_,
                      .cgroups = plan_.cgroups,
                      .stdio = std::move(plan_.stdio),
                      .image = std::move(plan_.image)};
    GANTRY_TRY(Created created, RunCreate(pod_.context(), std::move(create), pod_.StepDeadline()));
    boot_.process = std::move(created.sentry);
    gofer_.process = std::move(created.gofer);
    record_.socket = std::move(created.socket);
    if (gofer_.process) {
      record_.gofer_pid = gofer_.process->pid().value;
      record_.gofer_start_time = gofer_.process->start_time();
    }
    return {};
  }

  /// A sentry whose gofer has ended only says that it has told no mounts.
  void AddWords(Error& error) const {
    const std::string words = LastWords(gofer_.log);
    if (!words.empty() && !error.message.contains(words)) {
      error.message += "; its gofer says: " + words;
    }
  }

  /// Else it would not be understood why it was tried that way.
  void AddReason(Error& error) const {
    if (record_.by_create) {
      error.message += "; it was started so because: " + plan_.by_create;
    }
  }

  void EndProcesses() {
    for (const auto& process : {boot_.process, gofer_.process}) {
      if (process) {
        IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
        IgnoreError(process->Wait(pod_.options().timeout), "the sandbox's end kills what is left");
      }
    }
    IgnoreError(RemoveFilestores(FilestorePaths(plan_.spec, pod_.id().str())),
                "they go with the snapshot");
  }

  void Undo() {
    EndProcesses();
    IgnoreError(RemoveFilestores(VolumeFiles(plan_.spec.volumes, pod_.id().str())),
                "they go with the volumes");
    IgnoreError(RemoveFiles(pod_.context(), plan_.bundle, pod_.options().timeout),
                "they go with the bundle");
    pod_.context().Drop(kRunscName);
    pod_.context().Drop(kSentryLogName);
    pod_.Have(nullptr, nullptr);
  }

  Status Prepare() {
    if (plan_.runsc.IsMixed() && pod_.flags().same_release) {
      return Fail(Code::kFailedPrecondition, "use '{}': {}", plan_.runsc.runsc.path,
                  WhyMixed(plan_.runsc));
    }
    if (!plan_.spec.HasRootOfGofer() && !plan_.image) {
      GANTRY_TRY(plan_.image, OpenRootImage(plan_.spec.mounts.front().source, pod_.options()));
    }
    record_.by_create = !plan_.by_create.empty();
    if (!plan_.spec.has_netns && pod_.flags().network == Network::kSandbox) {
      pod_.UseHostNetwork();
    }
    record_.root = plan_.container;
    record_.own_id = plan_.own_id;
    record_.socket = plan_.bundle + "/" + kSocketName;
    record_.place = {plan_.bundle, plan_.cgroups, {}};
    GANTRY_TRY(record_.place.flags, FlagsFor(plan_.runsc, pod_.flags(), plan_.bundle));
    record_.runsc = plan_.runsc.runsc.path;
    record_.asks_for_mounts = plan_.runsc.dialect.gofer.contains("rpc-fd");
    record_.runs_hooks = plan_.runsc.dialect.gofer_runs_hooks;
    record_.conf = pod_.flags().ConfJson();
    record_.volumes = plan_.spec.volumes;
    record_.host_network = pod_.flags().network == Network::kHost;
    record_.no_ipv6 = plan_.spec.no_ipv6;
    record_.netns = plan_.spec.netns_path;
    record_.oom_kills = cgroup::OomKills(plan_.cgroups);
    // What one of that name has left is nobody's.
    GANTRY_CHECK_OK(RemoveFilestores(VolumeFiles(record_.volumes, pod_.id().str())));
    GANTRY_TRY(log_, MakeBoundedLog(kMaxLogBytes));
    const std::array stored = {NamedFd{kRunscName, plan_.runsc.runsc.file},
                               NamedFd{kSentryLogName, log_}};
    return pod_.context().StoreAll(stored);
  }

  GoferPlan PlanGofer() const {
    return {.place = record_.place,
            .spec = plan_.spec,
            .program = plan_.runsc.runsc.file,
            .asks_for_mounts = record_.asks_for_mounts,
            .id = RootId(),
            .logs = pod_.flags().logs,
            .log_owner = LogOwnerOf(RootId()),
            .tag = GoferTag(plan_.container)};
  }

  /// The files of both begin with the same time.
  LogOwner LogOwnerOf(std::string container) const {
    return {pod_.id().str(), std::move(container), started_};
  }

  std::string RootId() const { return record_.RootId(pod_.id()); }

  /// What serves each mount: the image, or a gofer's connection.
  Result<std::vector<UniqueFd>> Files() {
    std::vector<UniqueFd> files;
    size_t next = 0;
    for (const FileMount& mount : plan_.spec.mounts) {
      if (mount.conf.lower == MountConf::Lower::kNone) {
        continue;
      }
      if (mount.conf.lower == MountConf::Lower::kGofer) {
        files.push_back(std::move(gofer_.connections[next++]));
      } else if (plan_.image) {
        GANTRY_TRY(UniqueFd image, plan_.image.Duplicate());
        files.push_back(std::move(image));
      } else {
        return Fail(Code::kInternal, "boot: its image '{}' is not open", mount.source);
      }
    }
    return files;
  }

  Result<BootPlan> PlanBoot(std::vector<UniqueFd> filestores) {
    BootPlan boot{.place = record_.place,
                  .spec = plan_.spec,
                  .program = plan_.runsc.sentry_file(),
                  .flags = pod_.flags(),
                  .log = log_,
                  .id = RootId(),
                  .log_owner = LogOwnerOf(pod_.id().str()),
                  .socket = record_.socket,
                  .tag = kBootTag};
    boot.environment = ReleaseEnvironment(plan_.runsc, pod_.flags().same_release);
    GANTRY_TRY(boot.files, Files());
    boot.filestores = std::move(filestores);
    boot.mounts = std::move(gofer_.mounts);
    for (size_t i = 0; i < plan_.stdio.size(); ++i) {
      if (plan_.stdio[i]) {
        GANTRY_TRY(boot.stdio[i], plan_.stdio[i].Duplicate());
      }
    }
    boot.terminal = plan_.terminal;
    boot.node_network = pod_.flags().network == Network::kHost && !plan_.spec.has_netns;
    if (pod_.flags().network != Network::kNone && !plan_.spec.netns_path.empty()) {
      const std::string& path = plan_.spec.netns_path;
      GANTRY_TRY(boot.netns, net::About("open the network namespace", path, net::OpenNetns(path)));
    }
    return boot;
  }

  Status Keep() {
    record_.pid = boot_.process->pid().value;
    record_.start_time = boot_.process->start_time();
    GANTRY_CHECK_OK(pod_.Change([&](PodRecord& record) { record = record_; }));
    pod_.Have(boot_.process, std::make_shared<Sentry>(pod_.context(), RootId(), record_.socket,
                                                      pod_.StateSaver()));
    return {};
  }

  Pod& pod_;
  SentryPlan plan_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  PodRecord record_;
  UniqueFd log_;
  Gofer gofer_;
  Boot boot_;
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

Result<GoferProcess> StartSentry(Pod& pod, SentryPlan plan) {
  return Starter(pod, std::move(plan)).Start();
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
