// SPDX-License-Identifier: Apache-2.0
//
// Exec: registers a further process; Start runs it.
#include <utility>

#include <gantry/format.h>

#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/log/log.h"
#include "core/oci/bundle_spec.h"
#include "core/task/components.h"
#include "core/task/service.h"

namespace gantry::task {
namespace {

/// With a new exec. What is written later has room then, too.
constexpr size_t kMostRecordBytes = store::kMaxRecordBytes - store::kSpareRecordBytes;

size_t BytesOfSpecs(const Container& container) {
  size_t sum = 0;
  for (const auto& [id, exec] : container.execs) {
    sum += exec->spec_json.size();
  }
  return sum;
}

/// A sandbox may hold as much as is left when it does: it gets half of all, two get a third each,
/// and who comes after them finds something, too.
Status CheckShare(const Group& group, size_t more, size_t most) {
  const size_t own = group.exec_specs->bytes + more;
  const size_t all = group.all_exec_specs->bytes + more;
  if (own + all <= most) {
    return {};
  }
  return Fail(Code::kResourceExhausted,
              "the execs of sandbox '{}' would have {} bytes, those of all sandboxes {} of {}, and "
              "one gets no more than it leaves (limits.max_exec_bytes)",
              group.id, own, all, most);
}

/// Whether the sandbox, all sandboxes and the record have room for a spec of that size.
Status CheckRoom(const Container& container, size_t bytes, const config::Limits& limits) {
  const Group& group = *container.group;
  if (group.account->bytes + bytes > limits.max_bytes_per_sandbox) {
    return Fail(Code::kResourceExhausted,
                "{} bytes are held for sandbox '{}' (limits.max_bytes_per_sandbox)",
                group.account->bytes, group.id);
  }
  GANTRY_CHECK_OK(CheckShare(group, bytes, limits.max_exec_bytes));
  // A record that no engine could read would lose the container. The largest part of it is
  // looked at before anything else could write it.
  if (const size_t specs = bytes + BytesOfSpecs(container); specs > kMostRecordBytes) {
    return Fail(Code::kResourceExhausted,
                "its execs would have {} bytes; {} can be written and read again", specs,
                kMostRecordBytes);
  }
  return {};
}

}  // namespace

/// Large ones take a while: not on the loop.
async::Task<Result<std::string>> Service::ReadExecSpec(const Container& container,
                                                       const pb::ExecProcessRequest& request) {
  co_return co_await parts_.services.pool.RunFor(
      container.group->account, [&request]() -> Result<std::string> {
        GANTRY_TRY(const oci::ProcessSpec spec, oci::ParseProcess(request.spec().value()));
        return oci::WithTerminal(spec.json, request.terminal());
      });
}

/// Whoever started it and has gone never deletes it: an exec that has ended makes room for
/// another.
async::Task<void> Service::ForgetOldestExec(ContainerPtr container) {
  TaskProcessPtr oldest;
  for (const auto& [id, exec] : container->execs) {
    if (!exec->life.exited().is_set() || exec->slot.held()) {
      continue;
    }
    if (!oldest ||
        exec->life.exited().value().exited_at_ns < oldest->life.exited().value().exited_at_ns) {
      oldest = exec;
    }
  }
  if (!oldest) {
    co_return;
  }
  const async::Slot::Hold hold = co_await oldest->slot.Acquire();
  const Deadline deadline = DeadlineIn(parts_.config.timeouts.remove);
  const Status deleted = co_await proxy_.Delete(*container, *oldest, deadline);
  if (!deleted) {
    LogWarning({{"id", container->id.str()}, {"exec", oldest->id.str()}}, "forget it: {}",
               deleted.error().message);
    co_return;
  }
  container->execs.erase(oldest->id);
  oldest->life.Deleted();
  oldest->life.SetGone();
  if (oldest->host_pid) {
    parts_.services.processes.Release({oldest->host_pid.value, oldest->start_time});
  }
  LogInfo({{"id", container->id.str()}, {"exec", oldest->id.str()}},
          "it has ended and was not deleted: forgotten (limits.max_execs_per_container)");
  // Its client may still read.
  async::Start(FreeForgotten(container, oldest));
}

async::Task<void> Service::FreeForgotten(ContainerPtr container, TaskProcessPtr exec) {
  co_await remover_.CloseStreams(exec);
  co_await proxy_.Free(*container, {std::exchange(exec->backend, nullptr)},
                       DeadlineIn(parts_.config.timeouts.remove));
}

async::Task<Result<wire::Empty>> Service::Exec(const CallContext& call,
                                               pb::ExecProcessRequest request) {
  const bool replay = call.replay;
  GANTRY_CO_TRY(const ContainerPtr container, co_await Find(call, request.id()));
  GANTRY_CO_TRY(const ExecId id, ExecId::Parse(request.exec_id()));
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  if (container->execs.contains(id)) {
    if (!replay) {
      co_return Fail(Code::kAlreadyExists, "exec '{}' in container '{}': id already exists",
                     id.str(), container->id.str());
    }
    Publish(events::TaskExecAdded(container->subject(), id));
    co_return wire::Empty();
  }
  // A paused container takes execs; they start when it goes on.
  const State state = container->init->life.state();
  GANTRY_CO_CHECK_OK(CheckLegal(Operation::kExec, state == State::kPaused ? State::kRunning : state,
                                Format("container '{}'", container->id.str())));
  const size_t most = parts_.config.limits.max_execs_per_container;
  if (container->execs.size() >= most) {
    co_await ForgetOldestExec(container);
  }
  if (container->execs.size() >= most) {
    co_return Fail(Code::kResourceExhausted,
                   "exec '{}' in container '{}': {} are there already "
                   "(limits.max_execs_per_container)",
                   id.str(), container->id.str(), container->execs.size());
  }
  GANTRY_CO_TRY(std::string spec_json, co_await ReadExecSpec(*container, request));
  const std::string what = Format("exec '{}' in container '{}'", id.str(), container->id.str());
  if (Status room = CheckRoom(*container, spec_json.size(), parts_.config.limits); !room) {
    co_return std::unexpected(std::move(room).error().Within(what));
  }
  const TaskProcessPtr exec = factory_.NewProcess(*container, id);
  exec->SetSpec(std::move(spec_json));
  exec->stdio = {request.stdin(), request.stdout(), request.stderr(), request.terminal()};
  exec->life.Created();
  container->execs[id] = exec;
  container->deleted_execs.erase(id);
  if (Status saved = co_await records_.Save(*container, kMostRecordBytes); !saved) {
    container->execs.erase(id);
    co_return std::unexpected(std::move(saved).error().Within(what));
  }
  Publish(events::TaskExecAdded(container->subject(), id));
  co_return wire::Empty();
}

}  // namespace gantry::task
