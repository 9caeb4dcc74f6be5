// SPDX-License-Identifier: Apache-2.0
//
// A backend that is another one with a fault: `Plugin` of its own options is the good one's file,
// `Fault` of its handler's options names the fault (fault.h).
#include <dlfcn.h>
#include <sys/mount.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/plugin.h>

#include "tests/contract/faulty/container.h"

namespace gantry::faulty {
namespace {

class FaultySandbox final : public Sandbox {
 public:
  FaultySandbox(Fault fault, SandboxContext& context, std::unique_ptr<Sandbox> good)
      : fault_(fault), context_(context), good_(std::move(good)) {}

  Status Start() override { return good_->Start(); }

  Status Shutdown() override { return good_->Shutdown(); }

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    auto container = std::make_unique<FaultyContainer>(fault_, context_, context);
    if (fault_ == Fault::kBindsNothing) {
      SpawnRequest sleep;
      sleep.argv = {"/bin/sleep", "1000"};
      GANTRY_TRY([[maybe_unused]] const auto spawned, context_.Spawn(std::move(sleep)));
      return container;
    }
    ContainerRequest spoiled = request;
    spoiled.spec_json = SpoiledSpec(fault_, request.spec_json);
    // An OCI runtime reads the file.
    std::ofstream(request.bundle + "/config.json") << spoiled.spec_json;
    GANTRY_TRY(auto good, good_->CreateContainer(spoiled, container->context()));
    container->Take(std::move(good));
    if (fault_ == Fault::kLosesAdopted) {
      GANTRY_TRY([[maybe_unused]] const auto init,
                 context_.AdoptAs(container->context().bound(), "init-of/" + request.id.str()));
    }
    const std::string point = request.rootfs + "/dev";
    if (fault_ == Fault::kSharesMounts &&
        ::mount("tmpfs", point.c_str(), "tmpfs", 0, nullptr) != 0) {
      return FailErrno(errno, "mount on '{}'", point);
    }
    return container;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override {
    if (fault_ == Fault::kGivesUp) {
      return Fail(Code::kAborted, "recover container '{}': it was not finished", request.id.str());
    }
    auto container = std::make_unique<FaultyContainer>(fault_, context_, context);
    const bool lost = fault_ == Fault::kLosesAdopted &&
                      context_.FindSpawned("init/" + request.id.str()) == nullptr;
    if (fault_ == Fault::kSavesNothing || lost) {
      context.init().Exited({255, 0});
      return container;
    }
    GANTRY_TRY(auto good, good_->RecoverContainer(request, container->context(), blob));
    container->Take(std::move(good));
    return container;
  }

 private:
  const Fault fault_;
  SandboxContext& context_;
  const std::unique_ptr<Sandbox> good_;
};

class FaultyBackend final : public SandboxBackend {
 public:
  explicit FaultyBackend(std::unique_ptr<SandboxBackend> good) : good_(std::move(good)) {}

  BackendInfo Describe() override {
    BackendInfo info = good_->Describe();
    info.name = "faulty";
    return info;
  }

  Status CheckOptions(const std::string& options_json) override {
    GANTRY_TRY([[maybe_unused]] const Fault fault, FaultOf(options_json));
    return {};
  }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    GANTRY_TRY(const Fault fault, FaultOf(request.options_json));
    GANTRY_TRY(auto good, good_->CreateSandbox(request, context));
    return std::make_unique<FaultySandbox>(fault, context, std::move(good));
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override {
    GANTRY_TRY(const Fault fault, FaultOf(request.options_json));
    GANTRY_TRY(auto good, good_->RecoverSandbox(request, context, blob));
    return std::make_unique<FaultySandbox>(fault, context, std::move(good));
  }

 private:
  const std::unique_ptr<SandboxBackend> good_;
};

Result<std::unique_ptr<SandboxBackend>> Make(const std::string& options_json) {
  const nlohmann::json options = ReadJson(options_json);
  const std::string path =
      options.is_object() ? options.value("Plugin", std::string()) : std::string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto* const good =
      library == nullptr ? nullptr
                         : static_cast<const PluginDescriptor*>(dlsym(library, "gantry_plugin"));
  if (good == nullptr) {
    return Fail(Code::kInvalidArgument, "check option 'Plugin': '{}' is no plugin", path);
  }
  GANTRY_TRY(auto backend, good->create("{}"));
  return std::make_unique<FaultyBackend>(std::move(backend));
}

}  // namespace
}  // namespace gantry::faulty

GANTRY_PLUGIN("faulty", "0.1.0", gantry::faulty::Make);
