// SPDX-License-Identifier: Apache-2.0
//
// The calls of the Sandbox service that are short, and the pods as they are found. Create, Start
// and what ends a pod are in create.cc, start.cc and end.cc.
#include "core/pod/sandbox_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <gantry/pod_config.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/oci/resources.h>

#include "core/async/worker_pool.h"
#include "core/cgroup/weight_formula.h"
#include "core/config/config.h"
#include "core/log/log.h"
#include "core/pod/updated_resources.h"
#include "core/rpc/ttrpc.h"
#include "core/stats/metrics.h"
#include "core/task/components.h"
#include "core/task/container.h"
#include "core/task/registrar.h"
#include "core/task/timestamp.h"

namespace gantry::task {
namespace {

/// Of one entry of the verbose status.
constexpr size_t kMaxInfoBytes = size_t{256} << 10;

constexpr std::string_view kReady = "SANDBOX_READY";
constexpr std::string_view kNotReady = "SANDBOX_NOTREADY";

/// Limits from CRI's message, or from OCI's LinuxResources as JSON.
Result<PodResources> ReadResources(const wire::Any& any) {
  if (any.type_url().ends_with("LinuxContainerResources")) {
    return ParsePodResources(any.value());
  }
  GANTRY_TRY(cgroup::CgroupResources from, oci::ParseResources(any.value()));
  PodResources resources;
  resources.memory_limit = from.memory.limit_bytes;
  resources.memory_swap_limit = from.memory.swap_bytes;
  resources.cpu_quota = from.cpu.quota_us;
  resources.cpu_period = from.cpu.period_us;
  resources.cpu_shares = from.cpu.shares;
  resources.cpuset_cpus = std::move(from.cpu.cpus);
  resources.cpuset_mems = std::move(from.cpu.mems);
  resources.unified = std::move(from.unified);
  return resources;
}

/// None: of what can be changed nothing is said. What else containerd or its patched kin say of a
/// sandbox (extensions.tasks) comes with the containers.
Result<std::optional<PodResources>> ReadUpdate(const sandbox_pb::UpdateSandboxRequest& request) {
  if (request.has_resources()) {
    return ReadResources(request.resources());
  }
  const auto& extensions = request.sandbox().extensions();
  const auto updated = extensions.find(kUpdatedResources);
  if (updated == extensions.end()) {
    return std::optional<PodResources>();
  }
  GANTRY_TRY(const std::string resources, ReadUpdatedResources(updated->second.value()));
  return ParsePodResources(resources);
}

}  // namespace

SandboxService::SandboxService(Components& with, PodMap& pods)
    : parts_(with.parts),
      calls_(with.calls),
      proxy_(with.proxy),
      instances_(with.instances),
      sandboxes_(with.sandboxes),
      order_(with.order),
      meter_(with.meter),
      remover_(with.remover),
      pods_(pods),
      records_(with.parts.services) {}

SandboxService::~SandboxService() { pods_.Clear(); }

Status SandboxService::Register(rpc::MethodTable& table) {
  Registrar<SandboxService> methods(table, "containerd.runtime.sandbox.v1.Sandbox", *this, calls_,
                                    order_, meter_);
  const config::Timeouts& limits = parts_.config.timeouts;
  methods.Add("CreateSandbox", &SandboxService::Create, limits.create);
  methods.Add("StartSandbox", &SandboxService::Start, limits.start);
  methods.Add("Platform", &SandboxService::Platform, limits.start);
  methods.Add("StopSandbox", &SandboxService::Stop, limits.remove);
  methods.Add("UpdateSandbox", &SandboxService::Update, limits.pause);
  methods.Add("WaitSandbox", &SandboxService::Wait);
  methods.Add("SandboxStatus", &SandboxService::GetStatus, limits.pause);
  methods.Add("PingSandbox", &SandboxService::Ping, limits.pause);
  methods.Add("ShutdownSandbox", &SandboxService::Shutdown, limits.remove);
  methods.Add("SandboxMetrics", &SandboxService::Metrics, limits.pause);
  return methods.status();
}

async::Task<Result<PodPtr>> SandboxService::Find(const Call& call, std::string id) {
  if (const PodPtr pod = pods_.Find(call.address)) {
    co_await pod->ready.Wait();
  }
  // Looked up again: what was waited for may have turned out to be none.
  PodPtr found = pods_.Find(call.address);
  if (!found || found->id.str() != id) {
    co_return Fail(Code::kNotFound, "sandbox '{}': not found", id.substr(0, 80));
  }
  co_return found;
}

SandboxService::Answer<sandbox_pb::PlatformResponse> SandboxService::Platform(
    const Call& call, sandbox_pb::PlatformRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  GANTRY_CO_TRY(
      const SandboxPlatform platform,
      co_await proxy_.Platform(pod->entry, DeadlineOf(call, parts_.config.timeouts.start)));
  sandbox_pb::PlatformResponse response;
  response.mutable_platform()->set_os(rpc::CleanText(platform.os));
  response.mutable_platform()->set_architecture(rpc::CleanText(platform.architecture));
  response.mutable_platform()->set_variant(rpc::CleanText(platform.variant));
  co_return response;
}

SandboxService::Answer<sandbox_pb::StopSandboxResponse> SandboxService::Stop(
    const Call& call, sandbox_pb::StopSandboxRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  std::chrono::nanoseconds limit = parts_.config.timeouts.remove;
  if (request.timeout_secs() > 0) {
    limit = std::chrono::seconds(request.timeout_secs());
  }
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  GANTRY_CO_CHECK_OK(co_await End(pod, DeadlineOf(call, limit)));
  co_return sandbox_pb::StopSandboxResponse();
}

SandboxService::Answer<sandbox_pb::UpdateSandboxResponse> SandboxService::Update(
    const Call& call, sandbox_pb::UpdateSandboxRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  GANTRY_CO_TRY(const std::optional<PodResources> resources, ReadUpdate(request));
  if (resources) {
    GANTRY_CO_CHECK_OK(
        co_await UpdateResources(pod, *resources, DeadlineOf(call, parts_.config.timeouts.pause)));
  }
  for (const auto& [key, value] : request.annotations()) {
    pod->annotations[key] = value;
  }
  GANTRY_CO_CHECK_OK(co_await records_.Save(*pod));
  co_return sandbox_pb::UpdateSandboxResponse();
}

async::Task<Status> SandboxService::UpdateResources(PodPtr pod, PodResources resources,
                                                    Deadline deadline) {
  GANTRY_CO_TRY(const PodConfig config, ParsePodConfig(pod->config));
  cgroup::CgroupResources limits = PodLimits(resources, config.overhead);
  const uint64_t first = PodLimits(config.resources, config.overhead).cpu.shares.value_or(0);
  const cgroup::Cgroup cgroup = pod->cgroups.pod;
  Status updated = co_await proxy_.Update(pod->entry, resources, deadline);
  if (updated || updated.error().code != Code::kUnimplemented || cgroup.empty()) {
    co_return updated;
  }
  co_return co_await parts_.services.pool.Run([&]() -> Status {
    // The kubelet makes it, and may have set these very limits already.
    const auto formula = cgroup::FindWeightFormula(parts_.services.cgroups, cgroup,
                                                   {first, limits.cpu.shares.value_or(0)});
    limits.cpu.weight_formula = formula.value_or(limits.cpu.weight_formula);
    return cgroup.Update(limits);
  });
}

SandboxService::Answer<sandbox_pb::WaitSandboxResponse> SandboxService::Wait(
    const Call& call, sandbox_pb::WaitSandboxRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  if (!pod->life.exited().is_set() && !pod->life.gone()) {
    async::OneShot<void> woken;
    call.abandonment->Park([woken]() mutable { woken.Set(); });
    co_await pod->life.AwaitEnd(woken);
  }
  if (!pod->life.exited().is_set()) {
    if (pod->life.gone()) {
      co_return Fail(Code::kNotFound, "sandbox '{}': not found", request.sandbox_id());
    }
    co_return Fail(Code::kCanceled, "wait for sandbox '{}': the caller has gone",
                   request.sandbox_id());
  }
  const ExitStatus exit = pod->life.exited().value();
  sandbox_pb::WaitSandboxResponse response;
  response.set_exit_status(exit.status);
  SetTimestamp(response.mutable_exited_at(), exit.exited_at_ns);
  co_return response;
}

SandboxService::Answer<sandbox_pb::SandboxStatusResponse> SandboxService::GetStatus(
    const Call& call, sandbox_pb::SandboxStatusRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  sandbox_pb::SandboxStatusResponse response;
  if (request.verbose()) {
    auto& info = *response.mutable_info();
    const Result<SandboxInfo> known =
        co_await proxy_.Info(pod->entry, DeadlineOf(call, parts_.config.timeouts.pause));
    if (known) {
      for (const auto& [key, value] : *known) {
        info[rpc::CleanText(key)] = rpc::CleanText(value, kMaxInfoBytes);
      }
    }
    info["handler"] = pod->handler;
    info["backend"] = pod->backend_name;
    info["bundle"] = pod->bundle;
    info["netns"] = pod->netns_path;
  }
  response.set_sandbox_id(pod->id.str());
  response.set_pid(pod->pid);
  response.set_state(
      std::string(pod->life.effective_state() == State::kRunning ? kReady : kNotReady));
  SetTimestamp(response.mutable_created_at(), pod->created_at_ns);
  if (const std::optional<ExitStatus> exit = pod->life.exit()) {
    SetTimestamp(response.mutable_exited_at(), exit->exited_at_ns);
  }
  co_return response;
}

SandboxService::Answer<sandbox_pb::PingResponse> SandboxService::Ping(
    const Call& call, sandbox_pb::PingRequest request) {
  GANTRY_CO_TRY([[maybe_unused]] const PodPtr pod, co_await Find(call, request.sandbox_id()));
  co_return sandbox_pb::PingResponse();
}

SandboxService::Answer<sandbox_pb::ShutdownSandboxResponse> SandboxService::Shutdown(
    const Call& call, sandbox_pb::ShutdownSandboxRequest request) {
  Result<PodPtr> found = co_await Find(call, request.sandbox_id());
  if (!found) {
    // Shut down before, or never made: containerd was killed before CreateSandbox. From
    // NOT_FOUND it would take that the shim is gone too, and keep it and its bundle.
    const auto group = instances_.GroupAt(call.address);
    if (group && (*group)->id == request.sandbox_id() && !sandboxes_.Find(call.address)) {
      co_return sandbox_pb::ShutdownSandboxResponse();
    }
    co_return std::unexpected(std::move(found).error());
  }
  const PodPtr pod = *found;
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  if (!pod->life.gone()) {
    GANTRY_CO_CHECK_OK(co_await Remove(pod, DeadlineOf(call, parts_.config.timeouts.remove)));
    // Before the record goes: who comes in between knows that it was done.
    records_.Forget(*pod);
    co_await Drop(pod);
    LogInfo({{"ns", pod->group->ns.str()}, {"id", pod->id.str()}}, "sandbox shut down");
  }
  co_return sandbox_pb::ShutdownSandboxResponse();
}

SandboxService::Answer<sandbox_pb::SandboxMetricsResponse> SandboxService::Metrics(
    const Call& call, sandbox_pb::SandboxMetricsRequest request) {
  GANTRY_CO_TRY(const PodPtr pod, co_await Find(call, request.sandbox_id()));
  const cgroup::Cgroup cgroup = pod->cgroups.pod;
  const Result<ContainerMetrics> measured =
      co_await proxy_.Metrics(pod->entry, DeadlineOf(call, parts_.config.timeouts.pause));
  Result<stats::TypedMessage> metrics = Fail(Code::kUnimplemented, "");
  if (measured) {
    metrics = stats::Encode(*measured, parts_.services.cgroups.mode());
  } else if (measured.error().code == Code::kUnimplemented && !cgroup.empty()) {
    metrics = co_await parts_.services.pool.Run([&cgroup] { return stats::ReadMetrics(cgroup); });
  } else {
    metrics = std::unexpected(measured.error());
  }
  if (!metrics) {
    co_return std::unexpected(std::move(metrics).error());
  }
  sandbox_pb::SandboxMetricsResponse response;
  auto& metric = *response.mutable_metrics();
  SetTimestamp(metric.mutable_timestamp(), NowNs());
  metric.set_id(pod->id.str());
  metric.mutable_data()->set_type_url(std::move(metrics->type_url));
  metric.mutable_data()->set_value(std::move(metrics->value));
  co_return response;
}

}  // namespace gantry::task
