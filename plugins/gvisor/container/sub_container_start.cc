// SPDX-License-Identifier: Apache-2.0
//
// The start of a further container of a pod, by whichever engine, and how its end is asked for.
#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/container/sub_container.h"
#include "plugins/gvisor/spec/root_image.h"

namespace gantry::gvisor {

Status SubContainer::KeepOwnStreams() {
  GANTRY_TRY(streams_, KeepStreams(pod().context(), context().init(), streams_name_));
  return {};
}

/// From the store where an engine before this one has made the container.
Status SubContainer::HaveStreams() {
  if (!streams_.ends[0]) {
    GANTRY_TRY(streams_,
               KeptStreams(pod().context(), context().init(), streams_name_, request_.terminal));
  }
  return {};
}

void SubContainer::LetStreamsGo() {
  streams_ = {};
  ForgetKept(pod().context(), streams_name_, request_.terminal);
}

Status SubContainer::Start() {
  const std::lock_guard lock(start_mutex_);
  if (started_) {
    // It comes again where an engine before this one has been killed while hooks ran.
    return RunPoststart();
  }
  if (report_->told()) {
    return Fail(Code::kFailedPrecondition, "start container '{}': it has been killed", id().str());
  }
  const Deadline deadline = pod().StepDeadline();
  GANTRY_CHECK_OK(HaveStreams());
  GANTRY_TRY(Sentry::Started started, SendStart(streams_, deadline));
  GANTRY_CHECK_OK(Watch(std::move(started.wait), deadline));
  return RunPoststart();
}

Status SubContainer::Announce(Deadline deadline) {
  if (announced_) {
    return {};
  }
  GANTRY_TRY(const auto sentry, RunningSentry());
  const UniqueFd* terminal = streams_.terminal ? &streams_.ends[0] : nullptr;
  const auto made = sentry->manager().CreateSubcontainer(id().str(), terminal, deadline);
  // An engine before this one may have come as far.
  if (!made && made.error().code != Code::kAlreadyExists) {
    return std::unexpected(ToError(made.error(), Format("announce container '{}'", id().str())));
  }
  announced_ = true;
  return {};
}

Result<Sentry::Started> SubContainer::SendStart(const Streams& streams, Deadline deadline) {
  GANTRY_TRY(const auto sentry, RunningSentry());
  GANTRY_CHECK_OK(Announce(deadline));
  GANTRY_TRY(std::string spec, SpecToSend());
  Subcontainer container{.id = id().str(),
                         .spec_json = std::move(spec),
                         .conf_json = pod().record().conf,
                         .mounts = {},
                         .filestores = filestores_.size()};
  std::vector<int> fds;
  for (const UniqueFd& end : streams.ends) {
    if (!streams.terminal) {
      fds.push_back(end.get());
    }
  }
  for (const UniqueFd& file : filestores_) {
    fds.push_back(file.get());
  }
  std::vector<UniqueFd> images;
  size_t next = 0;
  for (const FileMount& mount : spec_.mounts) {
    container.mounts.push_back(mount.conf);
    if (mount.conf.lower == MountConf::Lower::kNone) {
      continue;
    }
    if (mount.conf.lower == MountConf::Lower::kGofer) {
      fds.push_back(gofer_.connections[next++].get());
      continue;
    }
    GANTRY_TRY(UniqueFd image, OpenRootImage(mount.source, pod().options()));
    fds.push_back(images.emplace_back(std::move(image)).get());
  }
  auto started = sentry->Start(container, fds, names_, deadline);
  announced_ = started.has_value();
  return started;
}

/// Of several the first answer counts: whether that on which an engine before this one has
/// asked is among them cannot be told.
std::vector<urpc::Connection> SubContainer::AskForEnd(std::optional<DurableCall> wait,
                                                      Deadline deadline) {
  std::vector<urpc::Connection> waits;
  if (wait) {
    waits.push_back((*std::move(wait)).Release());
  } else {
    if (auto stored = DurableCall::TakeUp(pod().context(), names_.wait)) {
      waits.push_back((*std::move(stored)).Release());
    }
    const auto sentry = pod().sentry();
    auto opened = sentry ? urpc::Connection::Open(sentry->socket(), deadline)
                         : urpc::Outcome<urpc::Connection>(std::unexpected(urpc::Failure{}));
    if (!opened) {
      return waits;
    }
    waits.push_back(*std::move(opened));
  }
  if (!ContainerManager::SendWait(waits.back(), id().str(), deadline)) {
    waits.pop_back();
  }
  return waits;
}

/// The sentry has started it.
Status SubContainer::Watch(std::optional<DurableCall> wait, Deadline deadline) {
  started_ = true;
  HavePidNamespace();
  pod().oom_scores().Add(id().str(), spec_.oom_score_adj);
  pod().ApplyOomScores();
  // The sentry has its own: of a gofer's connection that one side keeps no end is seen.
  gofer_.connections.clear();
  gofer_.log.reset();
  filestores_.clear();
  SandboxContext& sandbox = pod().context();
  std::vector<urpc::Connection> waits = AskForEnd(std::move(wait), deadline);
  sandbox.Drop(names_.start);
  LetStreamsGo();
  auto tell = TellEnd(report_, {.pod = shared_pod(),
                                .path = ExitPath(),
                                .name = names_.wait,
                                .container = id().str(),
                                .leaves_processes = spec_.pids != PidNamespace::kOwn,
                                .gofer = gofer_.process});
  if (waits.empty()) {
    tell(std::nullopt);
    return {};
  }
  GANTRY_TRY(wait_, AwaitEnd(sandbox, std::move(waits), std::move(tell)));
  return {};
}

void SubContainer::HavePidNamespace() {
  if (spec_.pids == PidNamespace::kOwn) {
    pod().pid_namespaces().Add(id(), [report = report_] { return !report->told(); });
  }
}

Result<std::string> SubContainer::SpecToSend() {
  std::string name;
  if (spec_.pids == PidNamespace::kOwn) {
    name = PidNamespaces::NameOf(id());
  } else if (spec_.pids == PidNamespace::kShared) {
    auto shared = pod().pid_namespaces().Shared();
    if (!shared) {
      pod().context().Log(LogLevel::kWarning,
                          Format("start container '{}': {}; it sees those of all", id().str(),
                                 shared.error().message));
    }
    name = std::move(shared).value_or("");
  }
  return WithPidNamespace(resolved_, name);
}

Result<bool> SubContainer::TakeUpStart(Deadline deadline) {
  SandboxContext& sandbox = pod().context();
  auto call = DurableCall::TakeUp(sandbox, names_.start);
  if (!call) {
    // What it had come to is known, and the question how it ends is left, if it was started.
    return sandbox.Take(names_.wait).has_value();
  }
  const auto sentry = pod().sentry();
  const auto sent = call->WasSent(deadline);
  if (!sent) {
    // Its sentry is gone, or hangs.
    if (sentry && urpc::IsLate(sent)) {
      sentry->LeaveStart(*std::move(call));
    }
    return true;
  }
  if (*sent && call->Peek(kStartSubcontainer, deadline)) {
    return true;
  }
  if (*sent && sentry) {
    sentry->ForgetFailed(id().str(), deadline);
  }
  names_.Drop(sandbox);
  return false;
}

}  // namespace gantry::gvisor
