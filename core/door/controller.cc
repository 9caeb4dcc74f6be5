// SPDX-License-Identifier: Apache-2.0
//
// The calls one by one. Each is the sandbox's own with other names around it, but for Create and
// Shutdown, which have the instance besides.
#include "core/door/controller.h"

#include <utility>

#include <gantry/format.h>

#include "core/door/keeper.h"
#include "core/log/log.h"
#include "core/rpc/typed.h"
#include "core/shim/arguments.h"
#include "core/trace/span_context.h"
#include "proto/containerd/sandbox.pb.h"

namespace gantry::door {
namespace {

namespace sandbox_pb = containerd::runtime::sandbox::v1;

constexpr char kControllerService[] = "containerd.services.sandbox.v1.Controller";
/// Of the Task service at a sandbox's socket.
constexpr uint32_t kTaskVersion = 3;
/// What an undone call gives to its undoing.
constexpr std::chrono::seconds kUndoLimit(30);

std::string TaskAddress(const std::string& socket) { return "ttrpc+unix://" + socket; }

/// To who has gone it has failed.
Status CheckWaitedFor(const rpc::CallContext& call) {
  return call.abandonment->happened()
             ? Fail(Code::kCanceled, "call '{}': the caller has gone", call.method)
             : Status();
}

SandboxKey KeyOf(const rpc::CallContext& call, const std::string& id) { return {call.ns, id}; }

}  // namespace

Result<std::string> HandlerOfRuntime(const std::string& runtime) {
  // The shim that containerd would execute: "io.containerd.NAME.v1" is containerd-shim-NAME-v1.
  constexpr std::string_view kType = "io.containerd.";
  std::string program = runtime.substr(runtime.rfind('/') + 1);
  if (program.starts_with(kType)) {
    program.replace(0, kType.size(), "containerd-shim-");
    if (const size_t dot = program.rfind('.'); dot != std::string::npos) {
      program[dot] = '-';
    }
  }
  std::string handler = shim::HandlerOf(program);
  if (handler.empty() && program != "containerd-shim-gantry-v1") {
    return Fail(Code::kInvalidArgument,
                "the runtime '{}' is none of gantry's: runtime_type is to be "
                "io.containerd.gantry.v1 or io.containerd.gantry-HANDLER.v1",
                runtime.substr(0, 200));
  }
  return handler;
}

Controller::Controller(async::Loop& loop, async::WorkerPool& pool, const Folders& folders,
                       Places places)
    : loop_(loop),
      pool_(pool),
      folders_(folders),
      places_(std::move(places)),
      sandboxes_(loop, pool, folders) {}

Status Controller::Register(rpc::MethodTable& table) {
  Status status;
  const auto add = [&]<class Request, class Response>(
                       const char* method,
                       Answer<Response> (Controller::*handler)(const Call&, Request)) {
    if (status) {
      status = rpc::AddTyped<Request, Response>(table, kControllerService, method,
                                                [this, handler](const Call& call, Request request) {
                                                  return (this->*handler)(call, std::move(request));
                                                });
    }
  };
  add("Create", &Controller::Create);
  add("Start", &Controller::Start);
  add("Platform", &Controller::Platform);
  add("Stop", &Controller::Stop);
  add("Wait", &Controller::Wait);
  add("Status", &Controller::GetStatus);
  add("Shutdown", &Controller::Shutdown);
  add("Metrics", &Controller::Metrics);
  add("Update", &Controller::Update);
  return status;
}

template <class Response, class Request>
Controller::Answer<Response> Controller::Ask(SandboxKey key, const char* method, Request request,
                                             Terms terms) {
  GANTRY_CO_TRY(std::string payload, rpc::SerializeMessage(request));
  GANTRY_CO_TRY(const std::string answer,
                co_await sandboxes_.Call(std::move(key), method, std::move(payload), terms.timeout,
                                         std::move(terms.trace)));
  Response response;
  GANTRY_CO_CHECK_OK(rpc::ParseMessage(answer, response));
  co_return response;
}

Controller::Terms Controller::TermsOf(const Call& call) {
  Terms terms;
  terms.timeout = call.timeout;
  for (const auto& [key, value] : call.metadata) {
    if (key == trace::kTraceparentKey || key == trace::kTracestateKey) {
      terms.trace.emplace_back(key, value);
    }
  }
  return terms;
}

link::Announce Controller::AnnounceOf(const SandboxKey& key) const {
  link::Announce instance;
  instance.id = key.id;
  instance.ns = key.ns;
  instance.bundle = folders_.PathOf(key);
  instance.grpc_address = places_.containerd;
  instance.ttrpc_address = places_.containerd_ttrpc;
  return instance;
}

Controller::Answer<controller_pb::ControllerCreateResponse> Controller::Create(
    const Call& call, controller_pb::ControllerCreateRequest request) {
  const SandboxKey key = KeyOf(call, request.sandbox_id());
  link::Announce instance = AnnounceOf(key);
  GANTRY_CO_TRY(instance.handler, HandlerOfRuntime(request.sandbox().runtime().name()));
  instance.options_type_url = request.sandbox().runtime().options().type_url();
  instance.options = request.sandbox().runtime().options().value();
  GANTRY_CO_CHECK_OK(co_await pool_.Run([&] { return folders_.Make(key); }));
  Status made = co_await MakeSandbox(key, std::move(instance), std::move(request), TermsOf(call));
  if (made) {
    made = CheckWaitedFor(call);
  }
  if (!made) {
    co_await Undo(key, "create");
    co_return std::unexpected(made.error());
  }
  controller_pb::ControllerCreateResponse response;
  response.set_sandbox_id(key.id);
  co_return response;
}

async::Task<Status> Controller::MakeSandbox(SandboxKey key, link::Announce instance,
                                            controller_pb::ControllerCreateRequest request,
                                            Terms terms) {
  const std::string bundle = instance.bundle;
  GANTRY_CO_CHECK_OK(co_await pool_.Run([&]() -> Status {
    GANTRY_TRY(const std::string socket, AnnounceInstance(places_.run_dir, instance));
    return folders_.SetAddress(key, socket);
  }));
  sandbox_pb::CreateSandboxRequest wanted;
  wanted.set_sandbox_id(key.id);
  wanted.set_bundle_path(bundle);
  wanted.mutable_rootfs()->Swap(request.mutable_rootfs());
  if (request.has_options()) {
    wanted.mutable_options()->Swap(request.mutable_options());
  }
  wanted.set_netns_path(std::move(*request.mutable_netns_path()));
  wanted.mutable_annotations()->swap(*request.mutable_annotations());
  GANTRY_CO_TRY([[maybe_unused]] const auto made,
                co_await Ask<sandbox_pb::CreateSandboxResponse>(
                    key, "CreateSandbox", std::move(wanted), std::move(terms)));
  co_return co_await SetStage(key, Stage::kCreated);
}

async::Task<Status> Controller::SetStage(SandboxKey key, Stage stage) {
  co_return co_await pool_.Run([&] { return folders_.SetStage(key, stage); });
}

Controller::Answer<controller_pb::ControllerStartResponse> Controller::Start(
    const Call& call, controller_pb::ControllerStartRequest request) {
  const SandboxKey key = KeyOf(call, request.sandbox_id());
  GANTRY_CO_TRY(const std::string socket, co_await sandboxes_.Address(key));
  // What fails is undone, so only one that has not been started before may be.
  GANTRY_CO_CHECK_OK(co_await pool_.Run([&]() -> Status {
    const Stage stage = folders_.StageOf(key);
    return stage == Stage::kCreated
               ? folders_.SetStage(key, Stage::kStarting)
               : Fail(Code::kFailedPrecondition, "start sandbox '{}': it is {}", key.id,
                      StageName(stage));
  }));
  sandbox_pb::StartSandboxRequest wanted;
  wanted.set_sandbox_id(key.id);
  auto started = co_await Ask<sandbox_pb::StartSandboxResponse>(key, "StartSandbox",
                                                                std::move(wanted), TermsOf(call));
  if (started) {
    Status noted = co_await SetStage(key, Stage::kStarted);
    if (noted) {
      noted = CheckWaitedFor(call);
    }
    if (!noted) {
      started = std::unexpected(std::move(noted).error());
    }
  }
  if (!started) {
    co_await Undo(key, "start");
    co_return std::unexpected(std::move(started).error());
  }
  controller_pb::ControllerStartResponse response;
  response.set_sandbox_id(key.id);
  response.set_pid(started->pid());
  response.mutable_created_at()->Swap(started->mutable_created_at());
  if (started->has_spec()) {
    response.mutable_spec()->Swap(started->mutable_spec());
  }
  response.set_address(TaskAddress(socket));
  response.set_version(kTaskVersion);
  co_return response;
}

Controller::Answer<controller_pb::ControllerPlatformResponse> Controller::Platform(
    const Call& call, controller_pb::ControllerPlatformRequest request) {
  sandbox_pb::PlatformRequest wanted;
  wanted.set_sandbox_id(request.sandbox_id());
  GANTRY_CO_TRY(auto told, co_await Ask<sandbox_pb::PlatformResponse>(
                               KeyOf(call, request.sandbox_id()), "Platform", std::move(wanted),
                               TermsOf(call)));
  controller_pb::ControllerPlatformResponse response;
  response.mutable_platform()->Swap(told.mutable_platform());
  co_return response;
}

Controller::Answer<controller_pb::ControllerStopResponse> Controller::Stop(
    const Call& call, controller_pb::ControllerStopRequest request) {
  sandbox_pb::StopSandboxRequest wanted;
  wanted.set_sandbox_id(request.sandbox_id());
  wanted.set_timeout_secs(request.timeout_secs());
  GANTRY_CO_TRY(
      [[maybe_unused]] const auto stopped,
      co_await Ask<sandbox_pb::StopSandboxResponse>(
          KeyOf(call, request.sandbox_id()), "StopSandbox", std::move(wanted), TermsOf(call)));
  co_return controller_pb::ControllerStopResponse();
}

Controller::Answer<controller_pb::ControllerWaitResponse> Controller::Wait(
    const Call& call, controller_pb::ControllerWaitRequest request) {
  sandbox_pb::WaitSandboxRequest wanted;
  wanted.set_sandbox_id(request.sandbox_id());
  GANTRY_CO_TRY(std::string payload, rpc::SerializeMessage(wanted));
  GANTRY_CO_TRY(const std::string answer,
                co_await sandboxes_.Wait(KeyOf(call, request.sandbox_id()), std::move(payload),
                                         call.abandonment));
  sandbox_pb::WaitSandboxResponse ended;
  GANTRY_CO_CHECK_OK(rpc::ParseMessage(answer, ended));
  controller_pb::ControllerWaitResponse response;
  response.set_exit_status(ended.exit_status());
  response.mutable_exited_at()->Swap(ended.mutable_exited_at());
  co_return response;
}

Controller::Answer<controller_pb::ControllerStatusResponse> Controller::GetStatus(
    const Call& call, controller_pb::ControllerStatusRequest request) {
  const SandboxKey key = KeyOf(call, request.sandbox_id());
  GANTRY_CO_TRY(const std::string socket, co_await sandboxes_.Address(key));
  sandbox_pb::SandboxStatusRequest wanted;
  wanted.set_sandbox_id(key.id);
  wanted.set_verbose(request.verbose());
  GANTRY_CO_TRY(auto told, co_await Ask<sandbox_pb::SandboxStatusResponse>(
                               key, "SandboxStatus", std::move(wanted), TermsOf(call)));
  controller_pb::ControllerStatusResponse response;
  response.set_sandbox_id(key.id);
  response.set_pid(told.pid());
  response.set_state(std::move(*told.mutable_state()));
  response.mutable_info()->swap(*told.mutable_info());
  response.mutable_created_at()->Swap(told.mutable_created_at());
  if (told.has_exited_at()) {
    response.mutable_exited_at()->Swap(told.mutable_exited_at());
  }
  if (told.has_extra()) {
    response.mutable_extra()->Swap(told.mutable_extra());
  }
  response.set_address(TaskAddress(socket));
  response.set_version(kTaskVersion);
  co_return response;
}

Controller::Answer<controller_pb::ControllerShutdownResponse> Controller::Shutdown(
    const Call& call, controller_pb::ControllerShutdownRequest request) {
  const SandboxKey key = KeyOf(call, request.sandbox_id());
  sandbox_pb::ShutdownSandboxRequest wanted;
  wanted.set_sandbox_id(key.id);
  const auto down = co_await Ask<sandbox_pb::ShutdownSandboxResponse>(
      key, "ShutdownSandbox", std::move(wanted), TermsOf(call));
  // Shut down before, or never made; or nobody has it any more, and its folder is what is left.
  if (!down && down.error().code != Code::kNotFound) {
    co_return std::unexpected(down.error());
  }
  GANTRY_CO_CHECK_OK(co_await Discard(key));
  co_return controller_pb::ControllerShutdownResponse();
}

Controller::Answer<controller_pb::ControllerMetricsResponse> Controller::Metrics(
    const Call& call, controller_pb::ControllerMetricsRequest request) {
  sandbox_pb::SandboxMetricsRequest wanted;
  wanted.set_sandbox_id(request.sandbox_id());
  GANTRY_CO_TRY(auto told, co_await Ask<sandbox_pb::SandboxMetricsResponse>(
                               KeyOf(call, request.sandbox_id()), "SandboxMetrics",
                               std::move(wanted), TermsOf(call)));
  controller_pb::ControllerMetricsResponse response;
  response.mutable_metrics()->Swap(told.mutable_metrics());
  co_return response;
}

Controller::Answer<controller_pb::ControllerUpdateResponse> Controller::Update(
    const Call& call, controller_pb::ControllerUpdateRequest request) {
  sandbox_pb::UpdateSandboxRequest wanted;
  wanted.set_sandbox_id(request.sandbox_id());
  wanted.mutable_sandbox()->Swap(request.mutable_sandbox());
  wanted.mutable_fields()->Swap(request.mutable_fields());
  GANTRY_CO_TRY(
      [[maybe_unused]] const auto done,
      co_await Ask<sandbox_pb::UpdateSandboxResponse>(
          KeyOf(call, request.sandbox_id()), "UpdateSandbox", std::move(wanted), TermsOf(call)));
  co_return controller_pb::ControllerUpdateResponse();
}

async::Task<Status> Controller::Discard(SandboxKey key) {
  sandboxes_.Forget(key);
  const link::Announce instance = AnnounceOf(key);
  co_return co_await pool_.Run([&]() -> Status {
    GANTRY_CHECK_OK(DeleteInstance(places_.run_dir, instance));
    return folders_.Remove(key);
  });
}

async::Task<void> Controller::Undo(SandboxKey key, std::string_view what) {
  const std::string ns = key.ns;
  const std::string id = key.id;
  sandbox_pb::ShutdownSandboxRequest wanted;
  wanted.set_sandbox_id(id);
  const auto down = co_await Ask<sandbox_pb::ShutdownSandboxResponse>(
      key, "ShutdownSandbox", std::move(wanted), Terms{kUndoLimit, {}});
  IgnoreError(down, "the keeper ends what is left");
  const Status undone = co_await Discard(std::move(key));
  if (!undone) {
    LogError({{"ns", ns}, {"id", id}}, "undo the {} of a sandbox: {}", what,
             undone.error().message);
  }
}

async::Task<void> Controller::Recover(std::vector<Folders::Left> all) {
  for (const Folders::Left& left : all) {
    const std::string& ns = left.key.ns;
    const std::string& id = left.key.id;
    if (left.stage == Stage::kCreating || left.stage == Stage::kStarting) {
      LogInfo({{"ns", ns}, {"id", id}}, "sandbox was {} when this program ended: it is undone",
              StageName(left.stage));
      co_await Undo(left.key, StageName(left.stage));
      continue;
    }
    const auto there = co_await sandboxes_.Address(left.key);
    if (!there && there.error().code == Code::kNotFound) {
      LogWarning({{"ns", ns}, {"id", id}}, "{}: what is left of it is ended",
                 there.error().message);
      const link::Announce instance = AnnounceOf(left.key);
      const Status ended =
          co_await pool_.Run([&] { return DeleteInstance(places_.run_dir, instance); });
      IgnoreError(ended, "its folder stays until it is shut down");
    }
  }
}

}  // namespace gantry::door
