// SPDX-License-Identifier: Apache-2.0
//
// Taking up what an engine before this one left: for each instance that the
// keeper names, its record is read, its streams are taken out of the store, its
// sandbox and container are recovered by their backend, and ends that came
// meanwhile are handled. Containers of one pod one after the other, in the
// order in which they were announced; pods side by side. Calls to a container
// wait for this; calls to others do not.
#include <algorithm>
#include <charconv>
#include <utility>

#include "core/log/log.h"
#include "core/os/mount.h"
#include "core/task/backend_call.h"
#include "core/task/service.h"
#include "core/task/stdio_host.h"

namespace gantry::task {
namespace {

void Restore(TaskProcess& process, const store::StdioPaths& stdio, State state,
             const store::ProcessRecord& record) {
  process.stdio = stdio;
  process.state = state;
  process.host_pid = record.pid;
  process.start_time = record.start_time;
  process.pid = static_cast<uint32_t>(record.shown_pid ? record.shown_pid.value : record.pid.value);
  if (record.exited) {
    process.exit = ExitStatus{record.exit_status, record.exited_at_ns};
  }
}

ContainerRequest RequestOf(const Container& container, std::string spec_json) {
  ContainerRequest request;
  request.id = container.id;
  request.bundle = container.bundle;
  request.spec_json = std::move(spec_json);
  request.rootfs = container.rootfs;
  request.terminal = container.init->stdio.terminal;
  request.checkpoint = container.checkpoint;
  request.options_json = container.options_json;
  return request;
}

}  // namespace

/// What is stored for an instance that has gone while no engine was there.
void Service::DropOrphans() {
  std::erase_if(stored_, [this](const std::string& name) {
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, number);
    const bool orphan = parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '/' &&
                        !instances_.contains(number);
    if (orphan) {
      parts_.services.link.Drop(name);
    }
    return orphan;
  });
}

void Service::SnapshotEnd(std::vector<std::string> stored) {
  stored_ = std::move(stored);
  DropOrphans();
  std::map<std::string, std::vector<uint64_t>> by_group;
  for (const auto& [number, instance] : instances_) {
    const auto group = groups_.find(instance.address);
    const Result<ContainerId> id = ContainerId::Parse(instance.announce.id);
    if (instance.forgotten || group == groups_.end() || !id) {
      continue;
    }
    Enter(*id, group->second);
    by_group[instance.address].push_back(number);
  }
  for (auto& [address, numbers] : by_group) {
    os::Start(RecoverGroup(std::move(numbers)));
  }
}

os::Task<void> Service::RecoverGroup(std::vector<uint64_t> numbers) {
  for (const uint64_t number : numbers) {
    co_await RecoverInstance(number);
  }
}

os::Task<void> Service::RecoverInstance(uint64_t number) {
  const auto found = instances_.find(number);
  if (found == instances_.end()) {
    co_return;
  }
  const link::InstanceAdded instance = found->second;
  const ContainerPtr container =
      containers_[KeyOf(*groups_[instance.address], instance.announce.id)];
  container->bundle = instance.announce.bundle;
  Result<store::Record> record =
      co_await parts_.services.pool.Run([container]() -> Result<store::Record> {
        Result<store::Record> read = store::Read(container->bundle);
        if (!read && read.error().code != Code::kNotFound) {
          IgnoreError(store::Quarantine(container->bundle), "it is logged and left where it is");
        }
        return read;
      });
  Status recovered;
  if (record) {
    recovered = co_await Recover(container, std::move(*record));
  } else {
    recovered = std::unexpected(record.error());
  }
  if (!recovered) {
    Leave(*container);
    if (recovered.error().code != Code::kNotFound) {
      LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recover: {}",
               recovered.error().message);
    }
  }
  container->ready.Set();
}

os::Task<Status> Service::Recover(ContainerPtr container, store::Record record) {
  container->handler = record.handler;
  container->backend_name = record.backend;
  container->state_dirs = record.state_dirs;
  container->options_json = record.options_json;
  container->mounts = record.mounts;
  container->annotations = record.annotations;
  container->checkpoint = record.checkpoint;
  container->created_at_ns = record.created_at_ns;
  container->blob = record.blobs["container"];
  container->init = NewProcess(*container, ExecId());
  Restore(*container->init, record.stdio, record.state, record.init);
  container->context = std::make_unique<ContainerContextImpl>(parts_, *this, container);
  oci::Spec spec;
  if (Result<oci::Spec> read = co_await parts_.services.pool.Run([&]() -> Result<oci::Spec> {
        return oci::ReadSpec(container->bundle, parts_.config.limits.max_spec_bytes);
      })) {
    spec = std::move(*read);
    container->private_pids = spec.has_private_pid_namespace();
  }
  container->rootfs =
      container->mounts.empty() ? spec.RootPath(container->bundle) : container->bundle + "/rootfs";
  if (const std::string& cgroup = record.blobs["cgroup"]; !cgroup.empty()) {
    if (Result<os::Cgroup> decoded = os::Cgroup::Decode(cgroup)) {
      OnCgroup(*container, std::move(*decoded));
    }
  }
  SandboxRequest sandbox;
  sandbox.kind = record.sandbox_id.empty() ? SandboxKind::kImplied : SandboxKind::kPaused;
  sandbox.bundle = container->bundle;
  sandbox.options_json = container->options_json;
  sandbox.annotations = container->annotations;
  if (const oci::LinuxNamespace* net = spec.FindNamespace("network")) {
    sandbox.netns_path = net->path;
  }
  if (!record.backend.empty()) {
    Result<std::shared_ptr<SandboxEntry>> opened = co_await OpenSandbox(
        container, std::move(sandbox), record.backend, &record.blobs["sandbox"]);
    if (opened) {
      container->sandbox = std::move(*opened);
      ++container->sandbox->containers;
    } else {
      LogError({{"id", container->id.str()}}, "its sandbox cannot be recovered: {}",
               opened.error().message);
    }
  }
  co_await RecoverStreams(container->init);
  const bool unfinished = record.state == State::kCreating;
  // Ends that are known while the rest is not yet are held back.
  container->init->start_pending = true;
  if (!container->sandbox && !unfinished) {
    co_await AdoptByRecord(container->init);
  }
  if (container->sandbox) {
    const ContainerRequest request = RequestOf(*container, spec.json);
    const std::shared_ptr<SandboxEntry> entry = container->sandbox;
    const std::string blob = container->blob;
    Result<std::unique_ptr<gantry::Container>> backend =
        co_await parts_.services.pool.Run([&]() -> Result<std::unique_ptr<gantry::Container>> {
          return plugin::GuardedCall(entry->backend_name, [&] {
            return entry->sandbox->RecoverContainer(request, *container->context, blob);
          });
        });
    if (backend) {
      container->backend = std::move(*backend);
    } else if (!unfinished) {
      LogError({{"id", container->id.str()}}, "its backend cannot recover it: {}",
               backend.error().message);
      co_await AdoptByRecord(container->init);
    }
  }
  if (unfinished) {
    left_streams_[KeyOf(*container->group, container->id.str())] =
        std::exchange(container->init->left_streams, {});
    co_await RollBack(container);
    co_return Fail(Code::kNotFound, "it had not been created");
  }
  co_await RecoverExecs(container, record);
  if (container->init->exit) {
    RepeatExit(*container->init);
  }
  StartPublished(*container->init);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recovered, {}",
          store::StateName(container->init->state));
  co_return Status();
}

os::Task<void> Service::RecoverStreams(TaskProcessPtr process) {
  if (process->state == (process->is_init() ? State::kCreating : State::kCreated)) {
    process->left_streams = NamesBelow(stored_, process->stdio_host->prefix());
    co_return;
  }
  std::vector<io::StoredFd> stored =
      co_await TakeStored(parts_.services.link, stored_, process->stdio_host->prefix());
  if (stored.empty() && process->exit) {
    co_return;
  }
  io::StdioOptions options;
  options.pipe_bytes = parts_.config.io.fifo_bytes;
  options.logger_stop = parts_.config.io.logger_stop;
  options.id = process->is_init() ? process->container.id.str() : process->id.str();
  options.ns = process->container.group->ns.str();
  options.logger_tag = "logger";
  const io::StdioPaths paths{process->stdio.in, process->stdio.out, process->stdio.err,
                             process->stdio.terminal};
  auto kept = std::make_shared<std::vector<io::StoredFd>>(std::move(stored));
  Result<std::shared_ptr<io::ProcessIo>> recovered =
      co_await parts_.services.pool.Run([&]() -> Result<std::shared_ptr<io::ProcessIo>> {
        GANTRY_TRY(auto opened, io::ProcessIo::Recover(parts_.relay, *process->stdio_host, paths,
                                                       options, std::move(*kept)));
        return std::shared_ptr<io::ProcessIo>(std::move(opened));
      });
  if (!recovered) {
    LogError({{"id", process->container.id.str()}, {"exec", process->id.str()}}, "its streams: {}",
             recovered.error().message);
    co_return;
  }
  process->io = std::move(*recovered);
  if (process->state == State::kRunning || process->state == State::kPaused ||
      process->state == State::kStopped) {
    process->io->Started();
  }
  if (process->exit) {
    process->io->Ended();
  }
}

os::Task<void> Service::RecoverExecs(ContainerPtr container, const store::Record& record) {
  for (const store::ExecRecord& saved : record.execs) {
    const TaskProcessPtr exec = NewProcess(*container, saved.id);
    exec->spec_json = saved.spec_json;
    Restore(*exec, saved.stdio, saved.state, saved.process);
    container->execs[saved.id] = exec;
    if (exec->exit) {
      co_await RecoverStreams(exec);
      RepeatExit(*exec);
      continue;
    }
    co_await RecoverStreams(exec);
    if (exec->state != State::kStarting && exec->state != State::kRunning) {
      continue;
    }
    exec->start_pending = exec->state == State::kStarting;
    ExecRequest request{exec->id, exec->spec_json, exec->stdio.terminal};
    Result<std::unique_ptr<gantry::Process>> backend =
        Fail(Code::kUnavailable, "its container was not recovered");
    if (container->backend) {
      const BackendCall call(*container);
      backend =
          co_await parts_.services.pool.Run([&]() -> Result<std::unique_ptr<gantry::Process>> {
            return call.OnContainer([&](gantry::Container& object) {
              return object.RecoverExec(request, *exec->context, true);
            });
          });
    }
    if (backend) {
      exec->backend = std::move(*backend);
      exec->state = exec->exit ? State::kStopped : State::kRunning;
      if (exec->io) {
        exec->io->Started();
      }
    } else if (exec->state == State::kStarting) {
      // It never ran; the Start that is replayed runs it.
      exec->start_pending = false;
      exec->state = State::kCreated;
      exec->io.reset();
      co_await RecoverStreams(exec);
    } else {
      LogError({{"id", container->id.str()}, {"exec", exec->id.str()}},
               "its backend cannot recover it: {}", backend.error().message);
      co_await AdoptByRecord(exec);
    }
  }
}

/// Without its backend a process still has its exit.
os::Task<void> Service::AdoptByRecord(TaskProcessPtr process) {
  if (!process->host_pid || process->exit) {
    co_return;
  }
  Result<engine::WatchedProcessPtr> host =
      co_await parts_.services.processes.Adopt(process->host_pid, process->start_time);
  if (host) {
    IgnoreError(OnBound(*process, std::move(*host)), "nothing is bound to it yet");
  } else {
    OnExited(*process, ExitStatus{255, 0});
  }
}

/// An end that is on record: containerd may not have been told.
void Service::RepeatExit(TaskProcess& process) {
  const os::ProcessId id{process.host_pid.value, process.start_time};
  if (process.host_pid && parts_.services.processes.IsUnacknowledged(id)) {
    Publish(events::TaskExit(process.container.subject(), process.id, process.pid, *process.exit));
    parts_.services.processes.Release(id);
  }
  process.state = State::kStopped;
  process.SetExited();
}

}  // namespace gantry::task
