// SPDX-License-Identifier: Apache-2.0
#include "core/task/contexts.h"

#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/backend/check.h"
#include "core/io/process_io.h"
#include "core/keeper_client/host_processes.h"
#include "core/link/messages.h"
#include "core/log/log.h"

namespace gantry::task {
namespace {

std::unexpected<Error> Gone(const ContainerId& id) {
  return Fail(Code::kNotFound, "container '{}' is not there any more", id.str());
}

}  // namespace

Result<std::unique_ptr<cgroup::OomWatch>> OpenOomWatch(const ContainerId& id,
                                                       const cgroup::Cgroup& cgroup) {
  Result<std::unique_ptr<cgroup::OomWatch>> watch = cgroup::OomWatch::Open(cgroup);
  if (!watch) {
    LogDebug({{"id", id.str()}}, "no OOM events: {}", watch.error().message);
  }
  return watch;
}

ProcessContextImpl::ProcessContextImpl(const Parts& parts, ProcessObserver& observer,
                                       const std::weak_ptr<TaskProcess>& process)
    : parts_(parts),
      observer_(observer),
      process_(process),
      container_id_(process.lock()->container.id),
      exec_id_(process.lock()->id) {}

std::string ProcessContextImpl::Name() const {
  return exec_id_.empty() ? container_id_.str() : container_id_.str() + "/" + exec_id_.str();
}

std::unexpected<Error> ProcessContextImpl::Late(std::string_view call) const {
  LogError({{"backend", backend_}, {"id", Name()}},
           "backend '{}' calls '{}' of a process that is not there any more", backend_, call);
  return Gone(container_id_);
}

Result<std::shared_ptr<io::ProcessIo>> ProcessContextImpl::Streams() {
  auto streams = async::Call(parts_.services.loop, [this]() -> std::shared_ptr<io::ProcessIo> {
    const TaskProcessPtr process = process_.lock();
    return process ? process->io : nullptr;
  });
  if (!streams) {
    return Late("AttachStream");
  }
  return streams;
}

Result<Stdio> ProcessContextImpl::TakeStdio() {
  GANTRY_TRY(const auto streams, Streams());
  return streams->Take();
}

Status ProcessContextImpl::Bind(std::shared_ptr<HostProcess> process) {
  auto watched = std::dynamic_pointer_cast<keeper_client::WatchedProcess>(process);
  if (!watched) {
    return Fail(Code::kInvalidArgument, "bind a process of '{}': it is not one of the keeper's",
                container_id_.str());
  }
  if (watched->IsBoundBy(this)) {
    return {};
  }
  return async::Call(parts_.services.loop, [&]() -> Status {
    const TaskProcessPtr self = process_.lock();
    return self ? observer_.OnBound(*self, std::move(watched)) : Late("Bind");
  });
}

void ProcessContextImpl::SetPid(HostPid pid) {
  if (process_.expired()) {
    IgnoreError(Status(Late("SetPid")), "it is logged");
    return;
  }
  if (!backend::CheckPid(backend_, Name(), pid)) {
    return;
  }
  // What the backend does next is behind it in the loop's queue.
  parts_.services.loop.Post([&observer = observer_, process = process_, pid] {
    if (const TaskProcessPtr self = process.lock()) {
      observer.OnPid(*self, pid);
    }
  });
}

void ProcessContextImpl::Exited(ExitStatus status) {
  if (process_.expired()) {
    IgnoreError(Status(Late("Exited")), "it is logged");
    return;
  }
  parts_.services.loop.Post([&observer = observer_, process = process_,
                             exit = backend::CheckExit(backend_, Name(), status)] {
    if (const TaskProcessPtr self = process.lock()) {
      observer.OnExited(*self, exit);
    }
  });
}

Result<UniqueFd> ProcessContextImpl::OpenConsole(ConsoleKind kind) {
  GANTRY_TRY(const auto streams, Streams());
  return streams->OpenConsole(kind);
}

Status ProcessContextImpl::AttachConsole(UniqueFd master, ConsoleKind kind) {
  GANTRY_TRY(const auto streams, Streams());
  return streams->AttachConsole(std::move(master), kind);
}

Status ProcessContextImpl::AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) {
  GANTRY_TRY(const auto streams, Streams());
  return streams->AttachStream(stream, std::move(fd), framing);
}

ContainerContextImpl::ContainerContextImpl(const Parts& parts, ProcessObserver& observer,
                                           const std::weak_ptr<Container>& container)
    : parts_(parts),
      observer_(observer),
      container_(container),
      init_(container.lock()->init->context.get()) {}

Status ContainerContextImpl::UseCgroupsOf(const HostProcess& process) {
  GANTRY_TRY(
      cgroup::Cgroup cgroup,
      cgroup::Cgroup::OfProcess(parts_.services.cgroups,
                                {.pid = process.pid().value, .start_time = process.start_time()}));
  std::unique_ptr<cgroup::OomWatch> oom =
      OpenOomWatch(init_->container(), cgroup).value_or(std::unique_ptr<cgroup::OomWatch>());
  // What the backend does next is behind it in the loop's queue.
  parts_.services.loop.Post([&observer = observer_, container = container_,
                             used = std::move(cgroup), oom = std::move(oom)]() mutable {
    if (const ContainerPtr self = container.lock()) {
      observer.OnCgroup(*self, std::move(used), std::move(oom));
    }
  });
  return {};
}

void ContainerContextImpl::UseStateDirs(std::vector<std::string> dirs) {
  async::Call(parts_.services.loop, [&] {
    if (const ContainerPtr self = container_.lock()) {
      self->state_dirs =
          backend::CheckStateDirs(self->backend_name, self->id.str(), std::move(dirs));
    }
  });
}

void ContainerContextImpl::UseCleanup(HostCommand command) {
  async::Call(parts_.services.loop, [&] {
    const ContainerPtr self = container_.lock();
    if (self && backend::CheckCleanup(self->backend_name, self->id.str(), command)) {
      self->cleanup =
          link::Command{std::move(command.argv), std::move(command.env), std::move(command.cwd)};
    }
  });
}

void ContainerContextImpl::OutOfMemory() {
  parts_.services.loop.Post([&observer = observer_, container = container_] {
    if (const ContainerPtr self = container.lock()) {
      observer.OnOutOfMemory(*self);
    }
  });
}

Status ContainerContextImpl::Save(std::string blob) {
  if (blob.size() > kMaxSaved) {
    return Fail(Code::kInvalidArgument, "save a container's state: {} bytes, {} are allowed",
                blob.size(), kMaxSaved);
  }
  auto write = async::Call(parts_.services.loop, [&]() -> std::function<Status()> {
    const ContainerPtr self = container_.lock();
    if (!self) {
      return [] { return Status(Fail(Code::kNotFound, "the container is not there any more")); };
    }
    self->blob = std::move(blob);
    return self->record.Writer(self->record.Next(ToRecord(*self)));
  });
  return write();
}

}  // namespace gantry::task
