// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/exec.h"

#include <utility>

#include <gantry/format.h>

#include "plugins/wasm/container.h"

namespace gantry::wasm {

WasmExec::WasmExec(std::shared_ptr<const Launcher> launcher, const ExecRequest& request,
                   SandboxContext& sandbox, ProcessContext& context,
                   std::shared_ptr<HostProcess> init)
    : launcher_(std::move(launcher)),
      request_(request),
      init_(std::move(init)),
      process_(sandbox, context,
               Format("exec/{}/{}", launcher_->request().id.str(), request.id.str())) {}

Status WasmExec::Start() {
  if (!process_.host()) {
    auto launch = launcher_->Exec(request_, init_);
    if (!launch) {
      return std::unexpected(
          std::move(launch).error().Within(Format("start exec '{}'", request_.id.str())));
    }
    GANTRY_CHECK_OK(process_.Make(launch->program, std::move(launch->request)));
  }
  return process_.Open();
}

Status WasmExec::Recover() {
  GANTRY_CHECK_OK(process_.Recover());
  return process_.Open();
}

Status WasmExec::Delete() { return process_.End(kEndLimit); }

}  // namespace gantry::wasm
