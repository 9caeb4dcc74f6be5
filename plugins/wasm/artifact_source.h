// SPDX-License-Identifier: Apache-2.0
//
// Where the compiled form of a module comes from.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/asker.h"
#include "plugins/wasm/kind.h"
#include "plugins/wasm/module/bytes.h"
#include "plugins/wasm/module/sha256.h"
#include "plugins/wasm/options.h"

namespace gantry::wasm {

/// A module in the form that its engine loads.
struct CompiledModule {
  /// A sealed file in memory, open for reading.
  UniqueFd file;
  Kind kind = Kind::kModule;
};

/// Thread: any, several calls at a time.
class ArtifactSource {
 public:
  ArtifactSource(const ArtifactSource&) = delete;
  ArtifactSource& operator=(const ArtifactSource&) = delete;
  virtual ~ArtifactSource() = default;

  /// Finds or makes it. Several who ask for one module wait for one compile, and those who ask for
  /// several for each other's by turns.
  /// Errors: kInvalidArgument: it is not valid; kDeadlineExceeded: `limit` is over, the compile
  /// goes on; kResourceExhausted: the compiler would take more than it may; kInternal,
  /// kUnavailable: the compiler has crashed, or cannot be had. Blocks: up to `limit`, and on the
  /// disk.
  virtual Result<CompiledModule> Get(const ModuleBytes& module, const Asker& asker,
                                     std::chrono::milliseconds limit) = 0;

  /// For `SandboxBackend::Counts`. Blocks: never.
  virtual std::vector<BackendCount> Counts() const { return {}; }

  /// As `SandboxBackend::Leave`.
  virtual void Leave() {}

 protected:
  ArtifactSource() = default;
};

/// What the containerd that listens at `address` has in its content store. Blocks: for seconds.
using FindDigests = std::function<Result<std::set<Sha256Digest>>(SandboxContext& context,
                                                                 const std::string& address)>;

/// The one that this build has; null: it has none.
FindDigests MakeFindDigests();

/// The one that this build has; null: it has no engine.
/// Owner: `context`, the backend's own, is borrowed and outlives it.
std::unique_ptr<ArtifactSource> MakeArtifactSource(SandboxContext& context, const Options& options);

}  // namespace gantry::wasm
