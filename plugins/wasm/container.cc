// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/container.h"

#include <csignal>
#include <utility>

#include <gantry/format.h>

#include "plugins/wasm/exec.h"

namespace gantry::wasm {
namespace {

/// Those that only somebody inside could run, who is not there.
void LogHooksLeftOut(const InsideHooks& hooks, const ContainerId& id, SandboxContext& sandbox) {
  const auto log = [&](std::string_view kind) {
    sandbox.Log(LogLevel::kWarning,
                Format("container '{}': its hooks of {} are not run: this backend runs those on "
                       "the node alone",
                       id.str(), kind));
  };
  if (hooks.create_container) {
    log("createContainer");
  }
  if (hooks.start_container) {
    log("startContainer");
  }
}

}  // namespace

WasmContainer::WasmContainer(std::shared_ptr<const Launcher> launcher, SandboxContext& sandbox,
                             ContainerContext& context)
    : launcher_(std::move(launcher)),
      sandbox_(sandbox),
      context_(context),
      init_(sandbox, context.init(), "init/" + launcher_->request().id.str()) {}

Status WasmContainer::Make() {
  GANTRY_TRY(Launch launch, launcher_->Init());
  GANTRY_CHECK_OK(init_.Make(launch.program, std::move(launch.request)));
  return context_.RunHooks(HookPoint::kCreate, init_.host()->pid());
}

Status WasmContainer::Create() {
  const ContainerRequest& request = launcher_->request();
  if (!request.checkpoint.empty()) {
    return Fail(Code::kUnimplemented,
                "create container '{}': the wasm backend has no checkpoints to restore",
                request.id.str());
  }
  GANTRY_TRY(const InsideHooks inside, context_.BeginHooks());
  LogHooksLeftOut(inside, request.id, sandbox_);
  if (Status made = Make(); !made) {
    IgnoreError(Delete(), "the first error counts");
    return std::unexpected(
        std::move(made).error().Within(Format("create container '{}'", request.id.str())));
  }
  return {};
}

Status WasmContainer::Recover() {
  Status found = init_.Recover();
  if (!found && found.error().code == Code::kAborted) {
    IgnoreError(context_.RunHooks(HookPoint::kDelete, {}), "those that fail are logged");
  }
  return found;
}

Status WasmContainer::Start() {
  GANTRY_CHECK_OK(init_.Open());
  Status ran = context_.RunHooks(HookPoint::kStart, init_.host()->pid());
  if (!ran) {
    IgnoreError(init_.host()->Signal(SIGKILL), "it may have ended by itself");
  }
  return ran;
}

Status WasmContainer::Delete() {
  GANTRY_CHECK_OK(init_.End(kEndLimit));
  IgnoreError(context_.RunHooks(HookPoint::kDelete, {}), "those that fail are logged");
  return {};
}

Status WasmContainer::Checkpoint(const CheckpointRequest& /*request*/) {
  return Fail(Code::kUnimplemented, "checkpoint container '{}': the wasm backend has none",
              launcher_->request().id.str());
}

Result<std::unique_ptr<Process>> WasmContainer::Exec(const ExecRequest& request,
                                                     ProcessContext& context) {
  return std::make_unique<WasmExec>(launcher_, request, sandbox_, context, init_.host());
}

Result<std::unique_ptr<Process>> WasmContainer::RecoverExec(const ExecRequest& request,
                                                            ProcessContext& context, bool started) {
  auto exec = std::make_unique<WasmExec>(launcher_, request, sandbox_, context, init_.host());
  GANTRY_CHECK_OK(started ? exec->Recover() : Status());
  return exec;
}

}  // namespace gantry::wasm
