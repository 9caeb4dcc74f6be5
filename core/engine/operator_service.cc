// SPDX-License-Identifier: Apache-2.0
//
// What gantryctl is told of the engine. The loop's state is copied first, without a wait in
// between, so that one answer shows one moment. What has to be read from files or asked of
// backends comes after that, on workers and within a second: an operator looks when something
// hangs, and is then told 0 for what could not be found out.
#include "core/engine/operator_service.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/co.h"
#include "core/async/worker_pool.h"
#include "core/backend/context.h"
#include "core/engine/event_feed.h"
#include "core/engine/tasks.h"
#include "core/engine/uses.h"
#include "core/events/publisher.h"
#include "core/io/process_io.h"
#include "core/link/operator_api.h"
#include "core/rpc/typed.h"
#include "core/task/sandboxes.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::engine {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void Fill(v1::Instance& out, const task::Container& container) {
  out.set_namespace_(container.group->ns.str());
  out.set_id(container.id.str());
  out.set_kind("container");
  if (container.group->id != container.id.str()) {
    out.set_sandbox_id(container.group->id);
  }
  out.set_handler(container.handler);
  out.set_created_at_ns(container.created_at_ns);
  out.set_execs(static_cast<uint32_t>(container.execs.size()));
  if (container.sandbox) {
    out.set_backend(container.sandbox->backend_name);
  }
  if (container.init) {
    out.set_state(std::string(store::StateName(container.init->life.state())));
    out.set_pid(container.init->pid);
  }
}

void Fill(v1::Instance& out, const task::Pod& pod) {
  out.set_namespace_(pod.group->ns.str());
  out.set_id(pod.id.str());
  out.set_kind("sandbox");
  out.set_handler(pod.handler);
  out.set_backend(pod.backend_name);
  out.set_created_at_ns(pod.created_at_ns);
  out.set_state(std::string(store::StateName(pod.life.state())));
  out.set_pid(pod.pid);
}

void Fill(v1::Process& out, const task::TaskProcess& process) {
  out.set_exec_id(process.id.str());
  out.set_pid(process.pid);
  out.set_state(std::string(store::StateName(process.life.state())));
  out.set_terminal(process.stdio.terminal);
  out.set_stdin(process.stdio.in);
  out.set_stdout(process.stdio.out);
  out.set_stderr(process.stdio.err);
  if (const std::optional<ExitStatus>& exit = process.life.exit()) {
    out.set_exit_status(exit->status);
    out.set_exited_at_ns(exit->exited_at_ns);
  }
}

/// What the engine holds for each sandbox beside what its account says.
class Sums {
 public:
  Sums(const std::vector<task::ContainerPtr>& containers, const events::Outbox& outbox) {
    for (const task::ContainerPtr& container : containers) {
      Sum& sum = sums_[container->group->account.get()];
      sum.events += outbox.QueuedBytes(container->subject());
      sum.unread += UnreadOf(container->init);
      for (const auto& [id, exec] : container->execs) {
        sum.unread += UnreadOf(exec);
      }
    }
  }

  void Fill(v1::Instance& out, const async::Account& account) const {
    out.set_engine_cpu_ns(account.cpu_ns.load(std::memory_order_relaxed));
    out.set_calls(static_cast<uint32_t>(account.calls));
    out.set_buffered_bytes(account.bytes);
    if (const auto found = sums_.find(&account); found != sums_.end()) {
      out.set_buffered_bytes(account.bytes + found->second.events);
      out.set_unread_bytes(found->second.unread);
    }
  }

 private:
  struct Sum {
    size_t events = 0;
    size_t unread = 0;
  };

  static size_t UnreadOf(const task::TaskProcessPtr& process) {
    return process && process->io ? process->io->UnreadBytes() : 0;
  }

  std::map<const async::Account*, Sum> sums_;
};

using Counts = std::map<std::string, std::vector<BackendCount>>;

constexpr std::chrono::seconds kCountsLimit(1);

async::Task<void> ReadCounts(async::WorkerPool& pool, const backend::Backends& backends,
                             async::OneShot<Counts> done) {
  auto read = co_await pool.Run([&backends]() -> Result<Counts> { return backends.Counts(); });
  done.Set(read ? std::move(*read) : Counts());
}

/// What backends count; nothing while all workers are busy, or where one does not answer.
async::Task<Counts> CountsOf(const Workers& workers, const backend::Backends& backends) {
  async::OneShot<Counts> done;
  async::Start(ReadCounts(workers.pool, backends, done));
  const std::optional<Counts> counts =
      co_await async::WithDeadline(workers.loop, kCountsLimit, done);
  co_return counts.value_or(Counts());
}

void Fill(v1::BackendStatus& out, const std::vector<BackendCount>& counts) {
  for (const BackendCount& count : counts) {
    v1::BackendCount* one = out.add_counts();
    one->set_handler(count.handler);
    one->set_name(count.name);
    one->set_value(count.value);
  }
}

/// What it has counted by its contexts: `NAME.WORD`.
void Fill(v1::BackendStatus& out, const std::map<std::string, uint64_t>& counters) {
  const std::string prefix = out.name() + ".";
  for (const auto& [name, value] : counters) {
    if (name.starts_with(prefix)) {
      v1::BackendCount* one = out.add_counts();
      one->set_name(name.substr(prefix.size()));
      one->set_value(value);
    }
  }
}

/// The services' state is only read here.
struct Reader : OperatorFrom {
  explicit Reader(const OperatorFrom& from) : OperatorFrom(from) {}

  const int64_t started_at_ns = Now();

  async::Task<Result<v1::ListResponse>> List(const rpc::CallContext&,
                                             v1::ListRequest request) const {
    v1::ListResponse response;
    std::vector<cgroup::Cgroup> cgroups;
    const auto wanted = [&request](const task::Group& group) {
      return request.namespace_().empty() || request.namespace_() == group.ns.str();
    };
    const std::vector<task::ContainerPtr> containers = tasks.containers().All();
    const Sums sums(containers, publishers.outbox());
    for (const task::PodPtr& pod : tasks.Pods()) {
      if (wanted(*pod->group)) {
        v1::Instance& out = *response.add_instances();
        Fill(out, *pod);
        sums.Fill(out, *pod->group->account);
        cgroups.push_back(pod->cgroups.pod);
      }
    }
    for (const task::ContainerPtr& container : containers) {
      if (wanted(*container->group)) {
        v1::Instance& out = *response.add_instances();
        Fill(out, *container);
        if (container->group->id == container->id.str()) {
          sums.Fill(out, *container->group->account);
        }
        cgroups.push_back(container->cgroup);
      }
    }
    const std::vector<Use> uses = co_await UsesOf(workers, std::move(cgroups),
                                                  request.usage() ? Wanted::kAll : Wanted::kMemory);
    for (size_t i = 0; i < uses.size(); ++i) {
      v1::Instance& out = *response.mutable_instances(static_cast<int>(i));
      out.set_memory_bytes(uses[i].memory);
      out.set_cpu_ns(uses[i].cpu_ns);
      out.set_pids(uses[i].pids);
    }
    co_return response;
  }

  /// The one of that id. Errors: kNotFound; kInvalidArgument where it is not unique.
  template <class T>
  static Result<T> Find(const std::vector<T>& all, const v1::InspectRequest& request) {
    T found;
    for (const T& one : all) {
      if (one->id.str() != request.id() ||
          (!request.namespace_().empty() && request.namespace_() != one->group->ns.str())) {
        continue;
      }
      if (found) {
        return Fail(Code::kInvalidArgument, "inspect '{}': it is in several namespaces, name one",
                    request.id());
      }
      found = one;
    }
    if (!found) {
      return Fail(Code::kNotFound, "inspect '{}': no such container or sandbox", request.id());
    }
    return found;
  }

  async::Task<Result<v1::InspectResponse>> Inspect(const rpc::CallContext&,
                                                   v1::InspectRequest request) const {
    Result<task::PodPtr> pod = Find(tasks.Pods(), request);
    if (pod) {
      co_return co_await InspectPod(*pod);
    }
    if (pod.error().code != Code::kNotFound) {
      co_return std::unexpected(std::move(pod).error());
    }
    GANTRY_CO_TRY(const task::ContainerPtr found, Find(tasks.containers().All(), request));
    if (!found->init) {
      co_return Fail(Code::kNotFound, "inspect '{}': it is only being made", request.id());
    }
    const uint64_t memory = co_await MemoryOf(workers, found->cgroup);
    v1::InspectResponse response;
    Fill(*response.mutable_instance(), *found);
    Sums(tasks.containers().All(), publishers.outbox())
        .Fill(*response.mutable_instance(), *found->group->account);
    response.mutable_instance()->set_memory_bytes(memory);
    response.set_bundle(found->bundle);
    response.set_options_json(found->options_json);
    response.set_address(found->group->address);
    for (const std::string& dir : task::ToRecord(*found).cgroups) {
      response.add_cgroups(dir);
    }
    Fill(*response.add_processes(), *found->init);
    for (const auto& [id, exec] : found->execs) {
      Fill(*response.add_processes(), *exec);
    }
    co_return response;
  }

  async::Task<v1::InspectResponse> InspectPod(task::PodPtr pod) const {
    const uint64_t memory = co_await MemoryOf(workers, pod->cgroups.pod);
    v1::InspectResponse response;
    Fill(*response.mutable_instance(), *pod);
    Sums(tasks.containers().All(), publishers.outbox())
        .Fill(*response.mutable_instance(), *pod->group->account);
    response.mutable_instance()->set_memory_bytes(memory);
    response.set_bundle(pod->bundle);
    response.set_options_json(pod->options_json);
    response.set_address(pod->group->address);
    for (const std::string& dir : pod->cgroups.own.Dirs()) {
      response.add_cgroups(dir);
    }
    co_return response;
  }

  /// By backend.
  std::map<std::string, uint32_t> CountSandboxes() const {
    std::set<const task::SandboxEntry*> seen;
    std::map<std::string, uint32_t> counts;
    const auto count = [&](const task::SandboxEntryPtr& entry) {
      if (entry && seen.insert(entry.get()).second) {
        ++counts[entry->backend_name];
      }
    };
    for (const task::PodPtr& pod : tasks.Pods()) {
      count(pod->entry);
    }
    for (const task::ContainerPtr& container : tasks.containers().All()) {
      count(container->sandbox);
    }
    return counts;
  }

  async::Task<Result<v1::StatusResponse>> GetStatus(const rpc::CallContext&,
                                                    v1::StatusRequest) const {
    v1::StatusResponse response;
    response.set_version(GANTRY_VERSION);
    response.set_engine_pid(static_cast<uint32_t>(getpid()));
    response.set_keeper_pid(static_cast<uint32_t>(getppid()));
    response.set_started_at_ns(started_at_ns);
    const std::map<std::string, uint32_t> sandboxes = CountSandboxes();
    for (const auto& [backend, count] : sandboxes) {
      response.set_sandboxes(response.sandboxes() + count);
    }
    response.set_containers(static_cast<uint32_t>(tasks.containers().size()));
    response.set_queued_events(static_cast<uint32_t>(publishers.outbox().counters().queued));
    const Counts counts = co_await CountsOf(workers, backends);
    response.set_lost_workers(static_cast<uint32_t>(tasks.backend_calls().lost()));
    for (const backend::BackendState& state : backends.States()) {
      v1::BackendStatus* out = response.add_backends();
      out->set_name(state.name);
      out->set_version(state.version);
      out->set_path(state.path);
      out->set_error(state.error);
      out->set_lost_workers(static_cast<uint32_t>(tasks.backend_calls().LostOf(state.name)));
      const auto count = sandboxes.find(state.name);
      out->set_sandboxes(count == sandboxes.end() ? 0 : count->second);
      if (const auto counted = counts.find(state.name); counted != counts.end()) {
        Fill(*out, counted->second);
      }
      Fill(*out, counters.All());
    }
    co_return response;
  }
};

}  // namespace

Status RegisterOperator(rpc::MethodTable& table, const OperatorFrom& from) {
  auto reader = std::make_shared<Reader>(from);
  GANTRY_CHECK_OK((rpc::AddTyped<v1::ListRequest, v1::ListResponse>(
      table, operator_api::kService, operator_api::kList,
      [reader](const rpc::CallContext& call, v1::ListRequest request) {
        return reader->List(call, std::move(request));
      })));
  GANTRY_CHECK_OK((rpc::AddTyped<v1::InspectRequest, v1::InspectResponse>(
      table, operator_api::kService, operator_api::kInspect,
      [reader](const rpc::CallContext& call, v1::InspectRequest request) {
        return reader->Inspect(call, std::move(request));
      })));
  GANTRY_CHECK_OK((rpc::AddTyped<v1::StatusRequest, v1::StatusResponse>(
      table, operator_api::kService, operator_api::kStatus,
      [reader](const rpc::CallContext& call, v1::StatusRequest request) {
        return reader->GetStatus(call, std::move(request));
      })));
  return rpc::AddTyped<v1::EventsRequest, v1::EventsResponse>(
      table, operator_api::kService, operator_api::kEvents,
      [&feed = from.feed](const rpc::CallContext& call, v1::EventsRequest request) {
        return feed.Read(call, std::move(request));
      });
}

}  // namespace gantry::engine
