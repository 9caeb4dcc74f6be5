// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/launch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/oci/exec.h>

#include "plugins/wasm/module/image_file.h"
#include "plugins/wasm/root_view.h"

namespace gantry::wasm {
namespace {

constexpr const char* kNativeMaker = "gantry-init";

// Source: containerd 2.3, internal/cri/annotations/annotations.go.
constexpr const char* kPod = "io.kubernetes.cri.sandbox-id";
constexpr const char* kPodNamespace = "io.kubernetes.cri.sandbox-namespace";

/// What is left for making the process when its module has been compiled.
constexpr std::chrono::milliseconds kMakingTakes{2000};

/// The function that is to be called. Errors: kInvalidArgument: of a component none can be named.
Result<std::string> EntryOf(const std::string& path, const std::string& named,
                            const std::string& annotated, bool component) {
  const std::string& entry = named.empty() ? annotated : named;
  if (component && !entry.empty()) {
    return Fail(Code::kInvalidArgument,
                "{}'{}': '{}' is a component, whose entry is its world's: no function can be named",
                named.empty() ? "annotation 'io.gantry.wasm/entry', " : "function ", entry, path);
  }
  return entry;
}

/// Of an error of the image's: whether it says nothing of the image.
bool IsOfContainerd(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kNotFound ||
         code == Code::kInternal;
}

std::vector<std::string> WordsOf(const Settings& settings, const std::string& entry, Kind kind) {
  std::vector<std::string> words = {
      Format("--kind={}", KindName(kind)),
      Format("--network={}", settings.network ? "pod" : "none"),
  };
  if (!entry.empty()) {
    words.push_back(Format("--entry={}", entry));
  }
  if (settings.memory != 0) {
    words.push_back(Format("--memory={}", settings.memory));
  }
  if (kind == Kind::kProxy && !settings.listen.empty()) {
    words.push_back(Format("--listen={}", settings.listen));
  }
  return words;
}

}  // namespace

std::string MakerOf(const Options& options) {
  return options.engine == kWasmEdge ? kWasmEdgeProgram : "gantry-wasm";
}

Result<std::optional<Launcher::Guest>> Launcher::FromImage(const oci::ProcessSpec& process,
                                                           Claim claim,
                                                           Result<Program> by_file) const {
  Named named = NamedIn(process.args.front());
  auto found = means_.find_in_image(sandbox_, {.address = options_.containerd_address,
                                               .ns = ns_.str(),
                                               .container = request_.id.str(),
                                               .program = named.path,
                                               .max_bytes = options_.max_module_bytes});
  std::optional<ModuleBytes> module = found ? std::move(*found) : std::nullopt;
  if (module) {
    return std::optional<Guest>(
        Guest{std::move(*module), std::move(named.path), std::move(named.entry)});
  }
  if (!found && (claim != Claim::kNone || !IsOfContainerd(found.error().code))) {
    return std::unexpected(std::move(found).error());
  }
  if (!found) {
    sandbox_.Log(LogLevel::kInfo, Format("container '{}': whether its image has a module as a "
                                         "layer is not known: {}",
                                         request_.id.str(), found.error().message));
  }
  if (!by_file) {
    return std::unexpected(std::move(by_file).error());
  }
  return std::optional<Guest>();
}

Result<std::optional<Launcher::Guest>> Launcher::FindGuest(const oci::Spec& spec,
                                                           const oci::ProcessSpec& process,
                                                           Claim claim, bool is_init) const {
  GANTRY_TRY(const RootView root, RootView::Open(request_.rootfs, request_.bundle, spec.mounts));
  auto program = FindProgram(root, process, claim);
  const bool missing = program ? program->missing : program.error().code == Code::kNotFound;
  if (missing && is_init && means_.find_in_image) {
    return FromImage(process, claim, std::move(program));
  }
  if (!program) {
    return std::unexpected(std::move(program).error());
  }
  const std::optional<ImageFile> file = std::move(program->file);
  if (!file) {
    return std::optional<Guest>();
  }
  GANTRY_TRY(ModuleBytes module, ReadModule(*file, options_.max_module_bytes, program->path));
  return std::optional<Guest>(
      Guest{std::move(module), std::move(program->path), std::move(program->entry)});
}

Result<CompiledModule> Launcher::Compiled(Guest guest, const Shape& shape,
                                          const Asker& asker) const {
  if (options_.engine == kWasmEdge) {
    if (shape.component) {
      return Fail(Code::kFailedPrecondition,
                  "'{}': it is a component, and the engine wasmedge runs modules of WASI preview 1 "
                  "alone (option 'engine')",
                  guest.path);
    }
    // It interprets the module itself.
    return CompiledModule{.file = std::move(guest.module.file), .kind = Kind::kModule};
  }
  if (!means_.artifacts) {
    return Fail(Code::kUnimplemented, "'{}': {}", guest.path, kNoEngine);
  }
  guest.module.functions = shape.functions;
  const std::chrono::milliseconds limit =
      std::min<std::chrono::milliseconds>(sandbox_.TimeLeft(), options_.compile_limit);
  auto compiled =
      means_.artifacts->Get(guest.module, asker, std::max(limit - kMakingTakes, limit / 2));
  if (!compiled) {
    return std::unexpected(std::move(compiled).error().Within(Format("compile '{}'", guest.path)));
  }
  return compiled;
}

/// Of a container without a pod each one is for itself.
Asker Launcher::AskerOf(const oci::Spec& spec) const {
  const auto pod = spec.annotations.find(kPod);
  const auto ns = spec.annotations.find(kPodNamespace);
  return {.tenant = ns == spec.annotations.end() ? ns_.str() : ns_.str() + "/" + ns->second,
          .sandbox = pod == spec.annotations.end() ? request_.id.str() : pod->second,
          .containerd = options_.containerd_address};
}

Status Launcher::AddModule(const oci::Spec& spec, const oci::ProcessSpec& process, Claim claim,
                           Launch& launch) const {
  const bool is_init = launch.request.init == nullptr;
  GANTRY_TRY(std::optional<Guest> guest, FindGuest(spec, process, claim, is_init));
  if (!guest) {
    return {};
  }
  GANTRY_TRY(const Settings settings, SettingsOf(spec, process, options_));
  GANTRY_TRY(const Shape shape, CheckModule(guest->module, guest->path));
  // The annotation's is the container's; an exec names its own.
  GANTRY_TRY(const std::string entry,
             EntryOf(guest->path, guest->entry, is_init ? settings.entry : "", shape.component));
  GANTRY_TRY(CompiledModule compiled, Compiled(*std::move(guest), shape, AskerOf(spec)));
  launch.request.name = MakerOf(options_);
  launch.request.env = {kGuestEnvironment};
  launch.request.words = WordsOf(settings, entry, compiled.kind);
  launch.request.fds.emplace_back("artifact", std::move(compiled.file));
  return {};
}

Status Launcher::Complete(const oci::Spec& spec, const oci::ProcessSpec& process, Claim claim,
                          Launch& launch) const {
  launch.request.id = request_.id.str();
  launch.request.bundle = request_.bundle;
  launch.request.spec_json = request_.spec_json;
  launch.request.name = kNativeMaker;
  // First what fails and has made nothing.
  GANTRY_CHECK_OK(AddModule(spec, process, claim, launch));
  // With the limits and devices of the spec, and removed by the core. Again: the same ones.
  GANTRY_TRY(launch.request.cgroups, container_.MakeCgroups(CgroupDevices::kOfSpec));
  GANTRY_CHECK_OK(CheckDevices(process, launch.request.cgroups));
  GANTRY_TRY(launch.program, means_.open_program(launch.request.name));
  return {};
}

Result<Launch> Launcher::Init() const {
  GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
  GANTRY_TRY(const Claim claim, ClaimOf(spec));
  Launch launch;
  launch.request.terminal = request_.terminal;
  GANTRY_CHECK_OK(Complete(spec, spec.process, claim, launch));
  return launch;
}

Result<Launch> Launcher::Exec(const ExecRequest& exec, std::shared_ptr<HostProcess> init) const {
  GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
  GANTRY_TRY(const oci::ProcessSpec process, oci::ParseExec(exec.process_json, spec));
  Launch launch;
  launch.request.terminal = exec.terminal;
  launch.request.init = std::move(init);
  launch.request.process_json = exec.process_json;
  GANTRY_CHECK_OK(Complete(spec, process, Claim::kNone, launch));
  return launch;
}

}  // namespace gantry::wasm
