// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/cache/fakes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::wasm {

ModuleBytes ModuleOf(std::string_view text) {
  return {.file = *SealedMemfd("module", text, MemfdUse::kRead),
          .size = text.size(),
          .digest = Sha256Of(text)};
}

std::string ContentOf(const UniqueFd& file) {
  return *ReadAt(file.get(), 0, *FileSize(file.get()));
}

std::string MadeOf(std::string_view module, std::string_view line) {
  return Format("{} made of {}", line, module);
}

Compiler::OpenProgram ProgramAt(const std::string& path) {
  return [path]() -> Result<UniqueFd> {
    UniqueFd program(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return program ? Result<UniqueFd>(std::move(program))
                   : Fail(Code::kNotFound, "open '{}'", path);
  };
}

Result<std::shared_ptr<HostProcess>> HookedContext::Spawn(SpawnRequest request) {
  const std::string mode = request.argv.back();
  if (!kMemoryIsLimited) {
    std::erase_if(request.rlimits, [](const auto& limit) { return limit.first == RLIMIT_AS; });
  }
  auto process = FakeSandboxContext::Spawn(std::move(request));
  if (process && on_spawned) {
    on_spawned(mode, **process);
  }
  return process;
}

void CacheTest::SetUp() {
  if (geteuid() != 0) {
    GTEST_SKIP() << "a compiler is started with root's rights, to lose them";
  }
  options_.directory = dir_.path() + "/wasm";
  options_.now = [this] { return now_.load(); };
  program_ = GANTRY_FAKE_COMPILE_ONE;
}

Artifacts& CacheTest::cache() {
  if (!cache_) {
    cache_ = std::make_unique<Artifacts>(context_, ProgramAt(program_), options_);
  }
  return *cache_;
}

std::string CacheTest::Content(std::string_view module) {
  const auto artifact = Get(module);
  return artifact ? ContentOf(artifact->file) : "error: " + artifact.error().message;
}

uint64_t CacheTest::Count(std::string_view name) {
  const auto counts = cache().Counts();
  const auto found = std::ranges::find(counts, name, &BackendCount::name);
  return found == counts.end() ? ~uint64_t{0} : found->value;
}

size_t CacheTest::Compiles() const {
  return static_cast<size_t>(std::ranges::count_if(
      context_.asked, [](const auto& asked) { return asked.argv.back() == "compile"; }));
}

std::string CacheTest::PathOf(std::string_view module, std::string_view line) const {
  const std::string key = EntryId{.module = Sha256Of(module), .compiler = Sha256Of(line)}.Key();
  return Format("{}/v1/{}/{}", options_.directory, key.substr(0, 2), key);
}

}  // namespace gantry::wasm
