// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/digests.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/fetch/answer.h"
#include "plugins/wasm/fetch/asking.h"
#include "plugins/wasm/fetch/digest.h"

namespace gantry::wasm::fetch {
namespace {

constexpr size_t kDigestBytes = std::tuple_size_v<Sha256Digest>;
constexpr size_t kPart = size_t{64} << 10;

}  // namespace

Status DigestWriter::Add(std::string_view digest) {
  const auto parsed = ParseDigest(digest);
  if (!parsed) {
    return {};
  }
  if (++count_ > kMaxDigests) {
    return Fail(Code::kResourceExhausted, "list the content store: it has more than {} blobs",
                kMaxDigests);
  }
  pending_.append(parsed->begin(), parsed->end());
  return pending_.size() < kPart ? Status() : Flush();
}

Status DigestWriter::Flush() {
  std::string_view left = pending_;
  while (!left.empty()) {
    const ssize_t wrote = ::write(output_, left.data(), left.size());
    if (wrote < 0 && errno != EINTR) {
      return FailErrno(errno, "write digests");
    }
    left.remove_prefix(wrote < 0 ? 0 : static_cast<size_t>(wrote));
  }
  pending_.clear();
  return {};
}

Result<std::string> DigestWriter::Finish() {
  GANTRY_CHECK_OK(Flush());
  return Format("{{\"digests\":{}}}\n", count_);
}

Result<std::set<Sha256Digest>> FindDigests(SandboxContext& context, const UniqueFd& program,
                                           const std::string& address,
                                           std::chrono::milliseconds limit) {
  GANTRY_TRY(const UniqueFd output, CreateSealableMemfd("digests", MemfdUse::kRead));
  GANTRY_TRY(const std::string text, AskFetch(context, program,
                                              {.address = address,
                                               .words = {},
                                               .wanted = "what it has",
                                               .output = output,
                                               .output_word = "digests",
                                               .max_bytes = kMaxDigests * kDigestBytes,
                                               .limit = limit}));
  GANTRY_TRY(const size_t told, ReadDigestsAnswer(text));
  GANTRY_TRY(const uint64_t size, FileSize(output.get()));
  if (told > kMaxDigests || size != told * kDigestBytes) {
    return Fail(Code::kInternal,
                "list the content store: gantry-wasm-fetch says {} digests and "
                "gives {} bytes",
                told, size);
  }
  GANTRY_TRY(const std::string bytes, ReadAt(output.get(), 0, size));
  if (bytes.size() != size) {
    return Fail(Code::kInternal, "list the content store: its digests are cut off");
  }
  std::set<Sha256Digest> all;
  for (size_t at = 0; at < bytes.size(); at += kDigestBytes) {
    Sha256Digest digest;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kDigestBytes, digest.begin());
    all.insert(digest);
  }
  return all;
}

}  // namespace gantry::wasm::fetch
