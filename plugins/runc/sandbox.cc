// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/sandbox.h"

#include <sys/utsname.h>

#include <utility>
#include <vector>

namespace gantry::runc {
namespace {

/// Options as they came with a request: clients send what other runtimes know.
Result<Options> RequestOptions(const std::string& document, const Options& base,
                               SandboxContext& context) {
  std::vector<std::string> unknown;
  GANTRY_TRY(Options options, ParseOptions(document, base, &unknown));
  for (const std::string& key : unknown) {
    context.Log(LogLevel::kInfo, "runtime option '" + key + "': not known to runc, ignored");
  }
  if (!options.shim_cgroup.empty() && base.shim_cgroup.empty()) {
    context.Log(LogLevel::kInfo,
                "runtime option 'ShimCgroup': without effect, there is no shim per container");
  }
  return options;
}

/// Go's name of this machine, which containerd's platforms use.
std::string GoArchitecture(std::string_view machine) {
  if (machine == "x86_64") {
    return "amd64";
  }
  if (machine == "aarch64") {
    return "arm64";
  }
  return std::string(machine.starts_with("arm") ? "arm" : machine);
}

}  // namespace

Result<std::unique_ptr<Sandbox>> RuncSandbox::Make(const SandboxRequest& request,
                                                   SandboxContext& context, const Options& base) {
  if (request.kind == SandboxKind::kPauseless) {
    return Fail(Code::kUnimplemented,
                "create sandbox '{}': the runc backend needs a pause container; use "
                "sandboxer \"podsandbox\"",
                request.id.str());
  }
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  return std::unique_ptr<Sandbox>(new RuncSandbox(request.ns, context, std::move(options)));
}

Result<std::unique_ptr<RuncContainer>> RuncSandbox::MakeContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, options_, *context_));
  return RuncContainer::Make(request, context, OciCommand(std::move(options), ns_, *context_),
                             *context_);
}

Result<std::unique_ptr<Container>> RuncSandbox::CreateContainer(const ContainerRequest& request,
                                                                ContainerContext& context) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  GANTRY_CHECK_OK(container->Create());
  return container;
}

Result<std::unique_ptr<Container>> RuncSandbox::RecoverContainer(const ContainerRequest& request,
                                                                 ContainerContext& context,
                                                                 const std::string& blob) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  GANTRY_CHECK_OK(container->Recover(blob));
  return container;
}

SandboxPlatform RuncSandbox::Platform() {
  utsname names = {};
  if (uname(&names) != 0) {
    return {};
  }
  return {"linux", GoArchitecture(names.machine), ""};
}

}  // namespace gantry::runc
