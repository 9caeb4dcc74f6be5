// SPDX-License-Identifier: Apache-2.0
//
// Modules are compiled once for the node, and kept.
#include <utility>

#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/artifact_source.h"
#include "plugins/wasm/cache/artifacts.h"

namespace gantry::wasm {
namespace {

CacheOptions CacheOptionsOf(const Options& options) {
  CacheOptions cache;
  cache.directory = options.cache_dir;
  cache.limits.time = options.compile_limit;
  cache.limits.max_memory = options.compile_memory;
  return cache;
}

class CachedArtifacts final : public ArtifactSource {
 public:
  CachedArtifacts(SandboxContext& context, const Options& options)
      : artifacts_(
            context, [] { return OpenHelper("gantry-wasm-compile"); }, CacheOptionsOf(options)) {}

  Result<CompiledModule> Get(const ModuleBytes& module, const Asker& asker,
                             std::chrono::milliseconds limit) override {
    GANTRY_TRY(Artifact artifact, artifacts_.Get(module, asker, limit));
    return CompiledModule{.file = std::move(artifact.file), .kind = artifact.kind};
  }

  std::vector<BackendCount> Counts() const override { return artifacts_.Counts(); }

  void Leave() override { artifacts_.Leave(); }

 private:
  Artifacts artifacts_;
};

}  // namespace

std::unique_ptr<ArtifactSource> MakeArtifactSource(SandboxContext& context,
                                                   const Options& options) {
  return std::make_unique<CachedArtifacts>(context, options);
}

}  // namespace gantry::wasm
