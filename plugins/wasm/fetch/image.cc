// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/image.h"

#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/fetch/answer.h"
#include "plugins/wasm/fetch/asking.h"
#include "plugins/wasm/fetch/digest.h"

namespace gantry::wasm::fetch {
namespace {

constexpr size_t kReadBytes = 256 << 10;

std::vector<std::string> WordsFor(const ImageQuestion& question) {
  return {
      "--namespace=" + question.ns,
      question.image.empty() ? "--container=" + question.container : "--image=" + question.image,
      "--program=" + question.program, Format("--max-bytes={}", question.max_bytes)};
}

/// Of a file that nobody changes any more.
Result<Sha256Digest> Sum(const UniqueFd& file, uint64_t size) {
  Sha256 sum;
  for (uint64_t at = 0; at < size; at += kReadBytes) {
    GANTRY_TRY(const std::string part, ReadAt(file.get(), at, kReadBytes));
    sum.Add(part);
  }
  return sum.Finish();
}

/// What was written, if it is what the answer says.
Result<ModuleBytes> TakeModule(const UniqueFd& written, const Blob& told) {
  GANTRY_CHECK_OK(SealMemfd(written.get()));
  ModuleBytes module;
  GANTRY_TRY(module.size, FileSize(written.get()));
  GANTRY_TRY(module.file, ReopenForReading(written));
  if (module.size == told.size) {
    GANTRY_TRY(module.digest, Sum(module.file, module.size));
  }
  const std::string is = DigestText(module.digest);
  if (module.size != told.size || is != told.digest) {
    return Fail(Code::kInternal, "take the module from {}: it gave {} bytes, {}, and says {}, {}",
                kFetchName, module.size, is, told.size, told.digest.substr(0, 100));
  }
  return module;
}

}  // namespace

Result<FoundImage> FindImageModule(SandboxContext& context, const UniqueFd& program,
                                   const ImageQuestion& question) {
  GANTRY_TRY(const UniqueFd module, CreateSealableMemfd("wasm-module", MemfdUse::kRead));
  GANTRY_TRY(const std::string text, AskFetch(context, program,
                                              {.address = question.address,
                                               .words = WordsFor(question),
                                               .wanted = "the module of an image",
                                               .output = module,
                                               .output_word = "module",
                                               .max_bytes = question.max_bytes,
                                               .limit = question.limit}));
  GANTRY_TRY(const ImageAnswer answer, ReadAnswer(text));
  FoundImage found{answer.platform, answer.layers.size(), std::nullopt};
  if (answer.module) {
    GANTRY_TRY(found.module, TakeModule(module, *answer.module));
  }
  return found;
}

}  // namespace gantry::wasm::fetch
