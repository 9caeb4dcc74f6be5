// SPDX-License-Identifier: Apache-2.0
//
// A small, whole backend. Its containers are made by gantry-init, which the plugin carries: root,
// mounts, namespaces, user, rights, seccomp and terminal are as the spec has them, of an init and
// of an exec. The core does streams, exits, signals, pause, limits, rules for devices, statistics
// and memory events. Hooks, which docs/gantry-init.md leaves to its caller, are refused; so is who
// could make devices where the spec names no cgroup that would keep him from the node's.
#include <chrono>

#include <gantry/format.h>
#include <gantry/plugin.h>
#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/init/gated_process.h>
#include <gantry/toolkit/json/json_member.h>
#include <gantry/toolkit/oci/exec.h>

namespace {

using namespace gantry;

constexpr std::chrono::seconds kEndLimit{5};

class PlainExec final : public Process {
 public:
  PlainExec(GatedProcess process, GatedRequest request)
      : process_(std::move(process)), request_(std::move(request)) {}

  Status Start() override {
    if (!process_.host()) {
      GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-init"));
      // A start that fails is the exec's end: there is no other.
      GANTRY_CHECK_OK(process_.Make(program, std::move(request_)));
    }
    return process_.Open();
  }

  /// It may wait at its gate, and its Start not come again.
  Status Recover() {
    GANTRY_CHECK_OK(process_.Recover());
    return process_.Open();
  }

  Status Delete() override { return process_.End(kEndLimit); }

 private:
  GatedProcess process_;
  GatedRequest request_;
};

class PlainContainer final : public Container {
 public:
  PlainContainer(const ContainerRequest& request, ContainerContext& context,
                 SandboxContext& sandbox)
      : request_(request),
        context_(context),
        sandbox_(sandbox),
        init_(sandbox, context.init(), "init/" + request.id.str()) {}

  Status Create() {
    GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
    if (!JsonMember(request_.spec_json, "hooks").empty() || !request_.checkpoint.empty()) {
      return Fail(Code::kUnimplemented, "create container '{}': no hooks and no checkpoints here",
                  request_.id.str());
    }
    GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-init"));
    GANTRY_TRY(GatedRequest wanted, Wanted(spec.process, request_.terminal));
    return init_.Make(program, std::move(wanted));
  }

  Status Recover() { return init_.Recover(); }

  Result<bool> HasStarted() override { return init_.IsOpen(); }

  Status Start() override { return init_.Open(); }

  Status Delete() override { return init_.End(kEndLimit); }

  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override {
    return MakeExec(request, context);
  }

  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override {
    GANTRY_TRY(auto exec, MakeExec(request, context));
    GANTRY_CHECK_OK(started ? exec->Recover() : Status());
    return exec;
  }

 private:
  Result<GatedRequest> Wanted(const oci::ProcessSpec& process, bool terminal) {
    GatedRequest wanted;
    wanted.id = request_.id.str();
    wanted.bundle = request_.bundle;
    wanted.spec_json = request_.spec_json;
    wanted.terminal = terminal;
    // With the limits and devices of the spec, and removed by the core. Again: the same ones.
    GANTRY_TRY(wanted.cgroups, context_.MakeCgroups(CgroupDevices::kOfSpec));
    GANTRY_CHECK_OK(CheckDevices(process, wanted.cgroups));
    return wanted;
  }

  Result<std::unique_ptr<PlainExec>> MakeExec(const ExecRequest& request, ProcessContext& context) {
    GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
    GANTRY_TRY(const oci::ProcessSpec process, oci::ParseExec(request.process_json, spec));
    GANTRY_TRY(GatedRequest wanted, Wanted(process, request.terminal));
    wanted.init = init_.host();
    wanted.process_json = request.process_json;
    const std::string tag = Format("exec/{}/{}", request_.id.str(), request.id.str());
    return std::make_unique<PlainExec>(GatedProcess(sandbox_, context, tag), std::move(wanted));
  }

  const ContainerRequest request_;
  ContainerContext& context_;
  SandboxContext& sandbox_;
  GatedProcess init_;
};

class PlainSandbox final : public Sandbox {
 public:
  explicit PlainSandbox(SandboxContext& context) : context_(context) {}

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    auto container = std::make_unique<PlainContainer>(request, context, context_);
    if (Status created = container->Create(); !created) {
      IgnoreError(container->Delete(), "the first error counts");
      return std::unexpected(std::move(created).error());
    }
    return container;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string&) override {
    auto container = std::make_unique<PlainContainer>(request, context, context_);
    GANTRY_CHECK_OK(container->Recover());
    return container;
  }

 private:
  SandboxContext& context_;
};

class PlainBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {.name = "plain", .version = "0.1.0", .needs = {}}; }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    if (request.kind == SandboxKind::kPauseless) {
      return Fail(Code::kUnimplemented, "create sandbox '{}': a pod needs its pause container here",
                  request.id.str());
    }
    return std::make_unique<PlainSandbox>(context);
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest&, SandboxContext& context,
                                                  const std::string&) override {
    return std::make_unique<PlainSandbox>(context);
  }
};

Result<std::unique_ptr<SandboxBackend>> Create(const std::string&) {
  return std::make_unique<PlainBackend>();
}

}  // namespace

GANTRY_PLUGIN("plain", "0.1.0", Create);
