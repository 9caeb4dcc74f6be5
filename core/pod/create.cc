// SPDX-License-Identifier: Apache-2.0
//
// CreateSandbox: checks, record, cgroups, mounts, the backend's sandbox. Whatever
// fails half-way is undone.
#include <utility>

#include <gantry/pod_config.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/pod/pod_files.h>

#include "core/async/worker_pool.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/link/name_owner.h"
#include "core/link/record_peek.h"
#include "core/log/log.h"
#include "core/oci/bundle.h"
#include "core/oci/runtime_options.h"
#include "core/pod/sandbox_service.h"
#include "core/task/components.h"
#include "core/task/container.h"
#include "core/task/mounts.h"
#include "core/task/requests.h"

namespace gantry::task {
namespace {

constexpr std::string_view kPodSandboxConfig = "runtime.v1.PodSandboxConfig";

/// What is read and decided before anything is made.
struct PodInputs {
  std::string handler;
  std::string options_json;
  std::string pod_config;
  PodConfig config;
  PodCgroup cgroups;
};

/// Containers join the pod's user namespace, or have the node's. What else is asked for would
/// quietly become the node's.
Status CheckUserNamespace(const PodConfig& config) {
  if (config.user == NamespaceMode::kPod || config.user == NamespaceMode::kNode) {
    return {};
  }
  return Fail(Code::kInvalidArgument,
              "read the pod's configuration: the mode {} of its user namespace is not supported, "
              "only POD and NODE are",
              config.user == NamespaceMode::kContainer ? "CONTAINER" : "TARGET");
}

Result<PodInputs> ReadPodInputs(const Group& group, const sandbox_pb::CreateSandboxRequest& request,
                                const cgroup::CgroupHierarchy& hierarchy) {
  GANTRY_CHECK_OK(oci::CheckBundle(request.bundle_path()));
  PodInputs inputs;
  GANTRY_TRY(oci::RuntimeOptions options,
             oci::DecodeRuntimeOptions(group.options_type_url, group.options));
  GANTRY_CHECK_OK(oci::ReadConfigPath(options));
  const std::string& type = request.options().type_url();
  if (type.ends_with(kPodSandboxConfig)) {
    inputs.pod_config = request.options().value();
    GANTRY_TRY(inputs.config, ParsePodConfig(inputs.pod_config));
    GANTRY_CHECK_OK(CheckUserNamespace(inputs.config));
  } else if (type.ends_with(".PodSandboxConfig")) {
    // Read as no configuration at all it would make another pod than was asked for.
    return Fail(Code::kInvalidArgument, "read the pod's configuration: it is a '{}', not a '{}'",
                type, kPodSandboxConfig);
  } else {
    GANTRY_TRY(oci::RuntimeOptions own, oci::DecodeRuntimeOptions(type, request.options().value()));
    GANTRY_TRY(options.json, oci::MergeOptions(options.json, own.json));
    if (!own.handler.empty()) {
      options.handler = own.handler;
    }
  }
  inputs.handler = !options.handler.empty() ? options.handler : group.handler;
  inputs.options_json = std::move(options.json);
  GANTRY_TRY(inputs.cgroups, PodCgroup::Find(hierarchy, inputs.config, request.sandbox_id()));
  return inputs;
}

}  // namespace

SandboxService::Answer<sandbox_pb::CreateSandboxResponse> SandboxService::Create(
    const Call& call, sandbox_pb::CreateSandboxRequest request) {
  const Deadline deadline = DeadlineOf(call, parts_.config.timeouts.create);
  GANTRY_CO_TRY(SandboxId id, SandboxId::Parse(request.sandbox_id()));
  GANTRY_CO_TRY(const GroupPtr group, instances_.GroupAt(call.address));
  if (id.str() != group->id) {
    co_return Fail(Code::kInvalidArgument, "create sandbox '{}': this is the socket of '{}'",
                   id.str(), group->id);
  }
  if (const Result<PodPtr> there = co_await Find(call, id.str())) {
    if (call.replay && (*there)->life.state() != State::kCreating) {
      // An earlier engine made it and died before it could say so.
      Tell(**there, "created");
      co_return sandbox_pb::CreateSandboxResponse();
    }
    co_return Fail(Code::kAlreadyExists, "create sandbox '{}': already exists", id.str());
  }
  if (sandboxes_.Find(group->address)) {
    co_return Fail(Code::kAlreadyExists, "create sandbox '{}': a container has that id", id.str());
  }
  if (!parts_.config_error.empty()) {
    co_return Fail(Code::kFailedPrecondition, "create sandbox '{}': {}", id.str(),
                   parts_.config_error);
  }
  const auto pod = std::make_shared<Pod>(std::move(id), group);
  pod->instance = instances_.NumberOf(KeyOf(*group, group->id));
  pod->ready.Set();
  pods_.Enter(pod);
  const async::Slot::Hold hold = co_await pod->slot.Acquire();
  if (Status status = co_await DoCreate(pod, std::move(request), deadline); !status) {
    IgnoreError(co_await Discard(pod, deadline), "the first error counts");
    co_return std::unexpected(std::move(status).error());
  }
  LogInfo({{"ns", group->ns.str()}, {"id", pod->id.str()}}, "sandbox created");
  pod->told_of = true;
  Tell(*pod, "created");
  HearHeld(pod);
  co_return sandbox_pb::CreateSandboxResponse();
}

async::Task<Status> SandboxService::DoCreate(PodPtr pod, sandbox_pb::CreateSandboxRequest request,
                                             Deadline deadline) {
  GANTRY_CO_CHECK_OK(co_await PrepareCreate(pod, request));
  GANTRY_CO_TRY(const SandboxEntryPtr entry, co_await PrepareEntry(pod, std::string()));
  pod->entry = entry;
  const SandboxRequest wanted = SandboxRequestOf(*pod);
  GANTRY_CO_CHECK_OK(co_await proxy_.Create(entry, wanted, deadline));
  sandboxes_.Enter(pod->group->address, entry);
  pod->life.Created();
  records_.Protect(*pod);
  co_return co_await records_.Save(*pod);
}

/// Checks, the first record, cgroups and mounts.
async::Task<Status> SandboxService::PrepareCreate(PodPtr pod,
                                                  const sandbox_pb::CreateSandboxRequest& request) {
  pod->life.BeginCreate();
  pod->netns_path = request.netns_path();
  pod->annotations = {request.annotations().begin(), request.annotations().end()};
  pod->created_at_ns = NowNs();
  pod->prefix = link::NameOwner::Sandbox(pod->instance).Text();
  GANTRY_CO_TRY(PodInputs inputs, co_await parts_.services.pool.Run([&]() -> Result<PodInputs> {
    return ReadPodInputs(*pod->group, request, parts_.services.cgroups);
  }));
  pod->bundle = request.bundle_path();
  pod->config = std::move(inputs.pod_config);
  const config::Handler* handler = parts_.config.FindHandler(inputs.handler);
  if (handler == nullptr) {
    co_return Fail(Code::kInvalidArgument,
                   "create sandbox '{}': handler '{}' is not in the configuration '{}'",
                   pod->id.str(), inputs.handler, parts_.config.file);
  }
  pod->handler = inputs.handler.empty() ? parts_.config.default_handler : inputs.handler;
  pod->backend_name = handler->backend;
  GANTRY_CO_TRY(pod->options_json, oci::MergeOptions(handler->options.json, inputs.options_json));
  const std::vector<mount::Mount> mounts = MountsOf(request.rootfs());
  const std::string rootfs = pod->bundle + "/rootfs";
  for (const mount::Mount& mount : mounts) {
    pod->mounts.push_back({mount.type, mount.source, rootfs});
  }
  // Named before a backend mounts there: whoever is killed meanwhile, they are unmounted.
  for (std::string& path : PodFileMounts(pod->bundle)) {
    pod->mounts.push_back({"tmpfs", "", std::move(path)});
  }
  pod->cgroups = std::move(inputs.cgroups);
  GANTRY_CO_CHECK_OK(co_await records_.Save(*pod));
  records_.Protect(*pod);
  co_return co_await parts_.services.pool.Run([&]() -> Status {
    GANTRY_CHECK_OK(pod->cgroups.Create(parts_.services.cgroups, inputs.config));
    return mounts.empty() ? Status() : mount::MountAll(rootfs, mounts, parts_.mount_scratch);
  });
}

async::Task<Result<SandboxEntryPtr>> SandboxService::PrepareEntry(PodPtr pod, std::string blob) {
  NewSandbox wanted;
  wanted.group = pod->group;
  wanted.handler = pod->handler;
  wanted.backend_name = pod->backend_name;
  wanted.options_json = pod->options_json;
  wanted.prefix = pod->prefix;
  wanted.blob = std::move(blob);
  const std::weak_ptr<Pod> weak = pod;
  wanted.pod =
      backend::PodEvents{[this, weak](const keeper_client::WatchedProcessPtr& host) -> Status {
                           const PodPtr self = weak.lock();
                           return self ? OnBound(self, host)
                                       : Fail(Code::kNotFound, "the sandbox is not there any more");
                         },
                         [weak](HostPid pid) {
                           if (const PodPtr self = weak.lock()) {
                             self->pid = static_cast<uint32_t>(pid.value);
                           }
                         },
                         [this, weak](ExitStatus exit) {
                           if (const PodPtr self = weak.lock()) {
                             OnExited(self, exit);
                           }
                         }};
  GANTRY_CO_TRY(const SandboxEntryPtr entry, co_await sandboxes_.Prepare(std::move(wanted)));
  entry->members_folder = pod->bundle + "/" + link::kMembersFolder;
  entry->keep_blob = [weak]() -> std::function<Status()> {
    const PodPtr self = weak.lock();
    if (!self) {
      return nullptr;
    }
    return self->record.Writer(self->record.Next(ToRecord(*self)));
  };
  co_return entry;
}

}  // namespace gantry::task
