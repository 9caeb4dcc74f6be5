// SPDX-License-Identifier: Apache-2.0
//
// Modules are compiled once for the node, and kept as long as an image has them.
#include <optional>
#include <utility>

#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/artifact_source.h"
#include "plugins/wasm/cache/artifacts.h"
#include "plugins/wasm/cache/cleaner.h"

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
            context, [] { return OpenHelper("gantry-wasm-compile"); }, CacheOptionsOf(options)) {
    if (auto digests = MakeFindDigests()) {
      cleaner_.emplace(context, artifacts_, std::move(digests));
    }
  }

  Result<CompiledModule> Get(const ModuleBytes& module, const Asker& asker,
                             std::chrono::milliseconds limit) override {
    GANTRY_TRY(Artifact artifact, artifacts_.Get(module, asker, limit));
    if (cleaner_) {
      cleaner_->Note(asker.containerd);
    }
    return CompiledModule{.file = std::move(artifact.file), .kind = artifact.kind};
  }

  std::vector<BackendCount> Counts() const override { return artifacts_.Counts(); }

  void Leave() override {
    artifacts_.Leave();
    if (cleaner_) {
      cleaner_->Stop();
    }
  }

 private:
  Artifacts artifacts_;
  std::optional<Cleaner> cleaner_;
};

}  // namespace

std::unique_ptr<ArtifactSource> MakeArtifactSource(SandboxContext& context,
                                                   const Options& options) {
  return std::make_unique<CachedArtifacts>(context, options);
}

}  // namespace gantry::wasm
