// SPDX-License-Identifier: Apache-2.0
#include "core/task/contexts.h"

#include <utility>

#include "core/os/ask.h"

namespace gantry::task {
namespace {

constexpr size_t kMaxBlob = size_t{64} << 10;

std::unexpected<Error> Gone(const ContainerId& id) {
  return Fail(Code::kNotFound, "container '{}' is not there any more", id.str());
}

}  // namespace

ProcessContextImpl::ProcessContextImpl(const Parts& parts, ProcessObserver& observer,
                                       const std::weak_ptr<TaskProcess>& process)
    : parts_(parts),
      observer_(observer),
      process_(process),
      container_id_(process.lock()->container.id),
      exec_id_(process.lock()->id) {}

Result<std::shared_ptr<io::ProcessIo>> ProcessContextImpl::Streams() {
  auto streams = os::Call(parts_.services.loop, [this]() -> std::shared_ptr<io::ProcessIo> {
    const TaskProcessPtr process = process_.lock();
    return process ? process->io : nullptr;
  });
  if (!streams) {
    return Gone(container_id_);
  }
  return streams;
}

Result<Stdio> ProcessContextImpl::TakeStdio() {
  GANTRY_TRY(const auto streams, Streams());
  return streams->Take();
}

Status ProcessContextImpl::Bind(std::shared_ptr<HostProcess> process) {
  auto watched = std::dynamic_pointer_cast<engine::WatchedProcess>(process);
  if (!watched) {
    return Fail(Code::kInvalidArgument, "bind a process of '{}': it is not one of the keeper's",
                container_id_.str());
  }
  return os::Call(parts_.services.loop, [&]() -> Status {
    const TaskProcessPtr self = process_.lock();
    return self ? observer_.OnBound(*self, std::move(watched)) : Gone(container_id_);
  });
}

void ProcessContextImpl::SetPid(HostPid pid) {
  os::Call(parts_.services.loop, [&] {
    if (const TaskProcessPtr self = process_.lock()) {
      observer_.OnPid(*self, pid);
    }
  });
}

void ProcessContextImpl::Exited(ExitStatus status) {
  parts_.services.loop.Post([&observer = observer_, process = process_, status] {
    if (const TaskProcessPtr self = process.lock()) {
      observer.OnExited(*self, status);
    }
  });
}

Status ProcessContextImpl::AttachConsole(UniqueFd master) {
  GANTRY_TRY(const auto streams, Streams());
  return streams->AttachConsole(std::move(master));
}

Status ProcessContextImpl::AttachStream(Stream stream, UniqueFd fd) {
  GANTRY_TRY(const auto streams, Streams());
  return streams->AttachStream(stream, std::move(fd));
}

ContainerContextImpl::ContainerContextImpl(const Parts& parts, ProcessObserver& observer,
                                           const std::weak_ptr<Container>& container)
    : parts_(parts),
      observer_(observer),
      container_(container),
      init_(container.lock()->init->context.get()) {}

Status ContainerContextImpl::UseCgroupsOf(const HostProcess& process) {
  GANTRY_TRY(os::Cgroup cgroup,
             os::Cgroup::OfProcess(parts_.services.cgroups, process.pid().value));
  os::Call(parts_.services.loop, [&] {
    if (const ContainerPtr self = container_.lock()) {
      observer_.OnCgroup(*self, std::move(cgroup));
    }
  });
  return {};
}

void ContainerContextImpl::UseStateDirs(std::vector<std::string> dirs) {
  os::Call(parts_.services.loop, [&] {
    if (const ContainerPtr self = container_.lock()) {
      self->state_dirs = std::move(dirs);
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
  if (blob.size() > kMaxBlob) {
    return Fail(Code::kInvalidArgument, "save a container's state: {} bytes, {} are allowed",
                blob.size(), kMaxBlob);
  }
  auto write = os::Call(parts_.services.loop, [&]() -> std::function<Status()> {
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
