// SPDX-License-Identifier: Apache-2.0
//
// Create: checks, record, mounts, streams, sandbox, container. Whatever fails
// half-way is undone in reverse; the record says what there is to undo, so a
// restart of the engine in the middle does the same.
#include "core/task/creator.h"

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/mount/mount.h>

#include "core/async/worker_pool.h"
#include "core/backend/context.h"
#include "core/backend/guard.h"
#include "core/config/config.h"
#include "core/events/publisher.h"
#include "core/io/process_io.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/log/log.h"
#include "core/oci/bundle.h"
#include "core/oci/bundle_spec.h"
#include "core/oci/runtime_options.h"
#include "core/task/backend_call.h"
#include "core/task/components.h"
#include "core/task/container.h"
#include "core/task/contexts.h"
#include "core/task/mounts.h"
#include "core/task/pods.h"
#include "core/task/requests.h"
#include "core/task/streams.h"
#include "core/task/unbound.h"

namespace gantry::task {
namespace {

events::TaskCreateFields FieldsOf(const pb::CreateTaskRequest& request, uint32_t pid) {
  events::TaskCreateFields fields;
  fields.bundle = request.bundle();
  for (const auto& mount : request.rootfs()) {
    fields.rootfs.push_back({mount.type(),
                             mount.source(),
                             mount.target(),
                             {mount.options().begin(), mount.options().end()}});
  }
  fields.standard_in = request.stdin();
  fields.standard_out = request.stdout();
  fields.standard_err = request.stderr();
  fields.terminal = request.terminal();
  fields.checkpoint = request.checkpoint();
  fields.pid = pid;
  return fields;
}

/// What is read and decided before anything is made.
struct Inputs {
  oci::Spec spec;
  oci::RuntimeOptions options;
  std::string options_json;
  /// By the container's own options, not by its group's.
  std::string asked_handler;
};

Result<Inputs> ReadInputs(const Group& group, const pb::CreateTaskRequest& request,
                          const config::Config& config) {
  GANTRY_CHECK_OK(oci::CheckBundle(request.bundle()));
  Inputs inputs;
  GANTRY_TRY(inputs.spec, oci::ReadSpec(request.bundle(), config.limits.max_spec_bytes));
  GANTRY_TRY(oci::RuntimeOptions at_start,
             oci::DecodeRuntimeOptions(group.options_type_url, group.options));
  GANTRY_CHECK_OK(oci::ReadConfigPath(at_start));
  GANTRY_TRY(inputs.options,
             oci::DecodeRuntimeOptions(request.options().type_url(), request.options().value()));
  GANTRY_CHECK_OK(oci::ReadConfigPath(inputs.options));
  inputs.asked_handler = inputs.options.handler;
  if (inputs.options.handler.empty()) {
    inputs.options.handler = at_start.handler;
  }
  GANTRY_TRY(inputs.options_json, oci::MergeOptions(at_start.json, inputs.options.json));
  return inputs;
}

/// Is set when the caller goes away.
io::GivenUp WhenAbandoned(const rpc::CallContext& call) {
  auto gone = std::make_shared<std::atomic<bool>>(call.abandonment->happened());
  call.abandonment->Notify([gone] { *gone = true; });
  return gone;
}

}  // namespace

/// A Create on its way.
struct Creator::Creation {
  ContainerPtr container;
  pb::CreateTaskRequest request;
  Deadline deadline;
  oci::Spec spec;
  io::GivenUp given_up;
};

Creator::Creator(Components& with, const Pods& pods)
    : parts_(with.parts),
      instances_(with.instances),
      containers_(with.containers),
      records_(with.records),
      calls_(with.calls),
      proxy_(with.proxy),
      exits_(with.exits),
      sandboxes_(with.sandboxes),
      pods_(pods),
      members_(with.members),
      remover_(with.remover),
      factory_(with.factory),
      order_(with.order),
      left_streams_(with.left_streams) {}

async::Task<Result<pb::CreateTaskResponse>> Creator::Create(const rpc::CallContext& call,
                                                            pb::CreateTaskRequest request) {
  const Deadline deadline = DeadlineOf(call, parts_.config.timeouts.create);
  GANTRY_CO_TRY(const ContainerId id, ContainerId::Parse(request.id()));
  GANTRY_CO_TRY(const GroupPtr group, instances_.GroupAt(call.address));
  pb::CreateTaskResponse response;
  if (const ContainerPtr there = co_await Present(*group, id)) {
    const TaskProcess* init = there->init.get();
    if (!call.replay || init == nullptr || init->life.state() == State::kCreating) {
      co_return Fail(Code::kAlreadyExists, "create container '{}': already exists", id.str());
    }
    // An earlier engine made it and died before it could say so.
    parts_.publishers.Publish(events::TaskCreate(there->subject(), FieldsOf(request, init->pid)));
    response.set_pid(init->pid);
    co_return response;
  }
  if (!parts_.config_error.empty()) {
    co_return Fail(Code::kFailedPrecondition, "create container '{}': {}", id.str(),
                   parts_.config_error);
  }
  auto creation = std::make_shared<Creation>();
  creation->container = containers_.Enter(id, group, instances_.NumberOf(KeyOf(*group, id.str())));
  creation->container->ready.Set();
  creation->request = std::move(request);
  creation->deadline = deadline;
  creation->given_up = WhenAbandoned(call);
  const ContainerPtr container = creation->container;
  const async::Slot::Hold hold = co_await container->slot.Acquire();
  if (Status status = co_await DoCreate(creation); !status) {
    co_await remover_.RollBack(container);
    remover_.Leave(*container);
    if (status.error().code == Code::kUnimplemented) {
      // To containerd this would say that the whole service is an older one.
      status.error().code = Code::kFailedPrecondition;
      status.error().message += ": not implemented";
    }
    co_return std::unexpected(std::move(status).error());
  }
  response.set_pid(container->init->pid);
  parts_.publishers.Publish(
      events::TaskCreate(container->subject(), FieldsOf(creation->request, container->init->pid)));
  exits_.StartPublished(*container->init);
  LogInfo({{"ns", group->ns.str()}, {"id", id.str()}}, "created, pid {}", container->init->pid);
  co_return response;
}

/// The container that has this id, if there is one. One that containerd has given
/// up is waited for until nothing of it is left.
async::Task<ContainerPtr> Creator::Present(const Group& group, ContainerId id) {
  const InstanceKey key = KeyOf(group, id.str());
  while (true) {
    const ContainerPtr there = containers_.Find(key);
    if (!there) {
      co_return nullptr;
    }
    co_await there->ready.Wait();
    if (there->abandoned) {
      co_await there->left.Wait();
    }
    if (!there->left.is_set()) {
      co_return there;
    }
  }
}

async::Task<Status> Creator::DoCreate(std::shared_ptr<Creation> creation) {
  Container& container = *creation->container;
  // Otherwise it would find no sandbox and make one of its own.
  co_await order_.DoneOf(container.group->address).Wait();
  if (container.instance == 0) {
    GANTRY_CO_CHECK_OK(co_await Announce(container, creation->request.bundle()));
  }
  container.init = factory_.NewProcess(container, ExecId());
  container.init->life.BeginCreate();
  container.init->left_streams = left_streams_.Take(KeyOf(*container.group, container.id.str()));
  container.context = std::make_unique<ContainerContextImpl>(parts_, exits_, creation->container);
  GANTRY_CO_CHECK_OK(co_await Prepare(*creation));
  GANTRY_CO_CHECK_OK(co_await JoinSandbox(*creation));
  GANTRY_CO_CHECK_OK(co_await MakeContainer(*creation));
  GANTRY_CO_CHECK_OK(co_await members_.Enlist(container));
  container.init->life.Created();
  records_.Protect(container);
  GANTRY_CO_CHECK_OK(co_await records_.Save(container));
  // Not before: until the record says that it is there, an engine that is killed leaves
  // it to be undone and made again, and its end must not be that of the client's stream.
  if (container.checkpoint.empty()) {  // Else it takes its streams at Start.
    container.init->io->Started();
  }
  co_return Status();
}

/// One that came without a shim of its own, on the socket of its pod: it is the keeper's, too.
async::Task<Status> Creator::Announce(Container& container, std::string bundle) {
  GANTRY_CO_TRY(link::InstanceAdded added,
                co_await parts_.services.link.AddMember(container.group->address,
                                                        container.id.str(), std::move(bundle)));
  container.instance = added.number;
  GANTRY_CO_CHECK_OK(instances_.Add(std::move(added)));
  parts_.publishers.Nudge(container.group->ttrpc_address);
  co_return Status();
}

/// Checks, the first record, mounts and streams.
async::Task<Status> Creator::Prepare(Creation& creation) {
  Container& container = *creation.container;
  const pb::CreateTaskRequest& request = creation.request;
  container.bundle = request.bundle();
  container.checkpoint = request.checkpoint();
  container.created_at_ns = NowNs();
  container.init->stdio = {request.stdin(), request.stdout(), request.stderr(), request.terminal()};
  GANTRY_CO_TRY(Inputs inputs, co_await parts_.services.pool.Run([&]() -> Result<Inputs> {
    return ReadInputs(*container.group, request, parts_.config);
  }));
  container.handler =
      members_.ChooseHandler(container, inputs.asked_handler, inputs.options.handler);
  const config::Handler* handler = parts_.config.FindHandler(container.handler);
  if (handler == nullptr) {
    co_return Fail(Code::kInvalidArgument,
                   "create container '{}': handler '{}' is not in the configuration '{}'",
                   container.id.str(), container.handler, parts_.config.file);
  }
  const SandboxEntryPtr sandbox = sandboxes_.Find(container.group->address);
  if (sandbox) {
    GANTRY_CO_CHECK_OK(Members::CheckHandler(container, *sandbox));
    container.sandbox_prefix = sandbox->prefix;
  }
  container.backend_name = handler->backend;
  container.init->context->SetBackend(container.backend_name);
  GANTRY_CO_TRY(container.options_json,
                oci::MergeOptions(handler->options.json, inputs.options_json));
  creation.spec = std::move(inputs.spec);
  container.private_pids = creation.spec.has_private_pid_namespace();
  container.confined = creation.spec.process.confined();
  container.netns_path = creation.spec.network_namespace_path();
  container.annotations = creation.spec.annotations;
  const std::vector<mount::Mount> mounts = MountsOf(request.rootfs());
  container.rootfs = creation.spec.RootfsIn(container.bundle, !mounts.empty());
  for (const mount::Mount& mount : mounts) {
    container.mounts.push_back({mount.type, mount.source, container.rootfs});
  }
  GANTRY_CO_CHECK_OK(co_await records_.Save(container));
  if (!mounts.empty()) {
    GANTRY_CO_CHECK_OK(co_await parts_.services.pool.Run([&]() -> Status {
      return mount::MountAll(container.rootfs, mounts, parts_.mount_scratch);
    }));
  }
  co_return co_await OpenStreams(parts_, calls_, container.init, creation.given_up);
}

async::Task<Status> Creator::JoinSandbox(Creation& creation) {
  Container& container = *creation.container;
  if (Status can = pods_.CheckJoin(container.group->address); !can) {
    co_return std::unexpected(
        std::move(can).error().Within(Format("create container '{}'", container.id.str())));
  }
  GANTRY_CO_TRY(auto sandbox, co_await members_.OpenSandbox(creation.container, nullptr));
  members_.JoinMembers(container, std::move(sandbox));
  co_return Status();
}

async::Task<Status> Creator::MakeContainer(Creation& creation) {
  Container& container = *creation.container;
  const ContainerRequest request = ContainerRequestOf(container, creation.spec.json);
  const SandboxEntryPtr sandbox = container.sandbox;
  const uint64_t since = TicksNow();
  GANTRY_CO_TRY(container.backend, co_await proxy_.Create(container, request, creation.deadline));
  GANTRY_CO_CHECK_OK(co_await StartScope(creation));
  if (!container.checkpoint.empty()) {
    co_return Status();  // It runs from its Start on.
  }
  co_return CheckBound(*sandbox, since, *container.init,
                       Format("create container '{}'", container.id.str()));
}

/// Its first process stands in its cgroup, at its gate: systemd can have both.
async::Task<Status> Creator::StartScope(Creation& creation) {
  const ContainerPtr container = creation.container;
  if (container->scope.empty()) {
    co_return Status();
  }
  const auto start = [container,
                      by = std::min(creation.deadline, DeadlineIn(cgroup::kScopeLimit))] {
    return container->context->StartScope(by);
  };
  Status started = co_await parts_.services.pool.RunFor(container->group->account, start);
  if (!started) {
    co_return std::unexpected(
        std::move(started).error().Within(Format("create container '{}'", container->id.str())));
  }
  co_return started;
}

}  // namespace gantry::task
