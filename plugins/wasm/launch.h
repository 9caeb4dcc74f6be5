// SPDX-License-Identifier: Apache-2.0
//
// How a process of a container is made: by gantry-init, which executes a program, or by
// gantry-wasm, which is one and runs a module in itself. Both are called in the same way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/init/gated_process.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/annotations.h"
#include "plugins/wasm/artifact_source.h"
#include "plugins/wasm/asker.h"
#include "plugins/wasm/module/bytes.h"
#include "plugins/wasm/options.h"
#include "plugins/wasm/program.h"

namespace gantry::wasm {

/// A container whose image may have its module as a layer, and not as a file.
struct ImageModule {
  /// containerd's socket for gRPC, its namespace, and the container's id there.
  std::string address;
  std::string ns;
  std::string container;
  /// The path that its first argument is: of several modules, the one of that name.
  std::string program;
  uint64_t max_bytes = 0;
};

/// None: its image has no such layer. Errors: kUnavailable, kDeadlineExceeded, kNotFound:
/// containerd does not say; others: of its image. Blocks: for seconds. Thread: workers.
using FindInImage =
    std::function<Result<std::optional<ModuleBytes>>(SandboxContext&, const ImageModule&)>;

/// The one that this build has; null: it has none.
FindInImage MakeFindInImage();

/// What the backend has for all of its containers.
struct Means {
  /// A program that the plugin carries, by its name. Errors: as `OpenHelper`.
  std::function<Result<UniqueFd>(std::string_view name)> open_program;
  /// Null: there is no engine.
  std::shared_ptr<ArtifactSource> artifacts;
  /// Null: modules are files alone.
  FindInImage find_in_image;
};

/// The program of the engine WasmEdge.
inline constexpr const char* kWasmEdgeProgram = "gantry-wasmedge";

/// Of a program for modules, whose guest sees nothing of it. Freed pieces that the C library would
/// keep for a next use hold pages of the heap, and after its start a guest makes few.
inline constexpr const char* kGuestEnvironment = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";

/// Of a build that has none.
inline constexpr const char* kNoEngine =
    "this gantry was built without a WebAssembly engine (plugins/wasm/README.md says how to have "
    "one)";

/// The program for modules of the engine that they name.
std::string MakerOf(const Options& options);

/// The program, and what it is told.
struct Launch {
  UniqueFd program;
  GatedRequest request;
};

/// What processes of one container are made from. Thread: workers, several calls at a time.
/// Owner: the contexts are borrowed and outlive it.
class Launcher {
 public:
  Launcher(ContainerRequest request, Namespace ns, SandboxContext& sandbox,
           ContainerContext& container, const Options& options, Means means)
      : request_(std::move(request)),
        ns_(std::move(ns)),
        sandbox_(sandbox),
        container_(container),
        options_(options),
        means_(std::move(means)) {}

  const ContainerRequest& request() const { return request_; }

  /// Its init. Errors: as `FindProgram`, `SettingsOf`, `ReadModule`, `CheckModule`,
  /// `ArtifactSource::Get`, all with the container's id; kFailedPrecondition: what the engine that
  /// is asked for does not run. Blocks: on files, and for a compile.
  Result<Launch> Init() const;
  /// A process more, beside `init`. What it runs is told by its first bytes alone.
  Result<Launch> Exec(const ExecRequest& exec, std::shared_ptr<HostProcess> init) const;

 private:
  /// A module that is to be run.
  struct Guest {
    ModuleBytes module;
    /// As errors call it.
    std::string path;
    /// Named behind `#`; empty: none.
    std::string entry;
  };

  Status Complete(const oci::Spec& spec, const oci::ProcessSpec& process, Claim claim,
                  Launch& launch) const;
  /// The module of a file, or of a layer of the image; none: the kernel's.
  Result<std::optional<Guest>> FindGuest(const oci::Spec& spec, const oci::ProcessSpec& process,
                                         Claim claim, bool is_init) const;
  Result<std::optional<Guest>> FromImage(const oci::ProcessSpec& process, Claim claim,
                                         Result<Program> by_file) const;
  /// The guest as its engine loads it.
  Result<CompiledModule> Compiled(Guest guest, const Shape& shape, const Asker& asker) const;
  Asker AskerOf(const oci::Spec& spec) const;
  Status AddModule(const oci::Spec& spec, const oci::ProcessSpec& process, Claim claim,
                   Launch& launch) const;

  const ContainerRequest request_;
  const Namespace ns_;
  SandboxContext& sandbox_;
  ContainerContext& container_;
  const Options options_;
  const Means means_;
};

}  // namespace gantry::wasm
