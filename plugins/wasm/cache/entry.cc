// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/entry.h"

#include <concepts>
#include <cstring>

namespace gantry::wasm {
namespace {

constexpr std::string_view kMagic = "GANTRYWA";
constexpr uint32_t kFailed = 255;

/// Little endian.
template <std::integral T>
void Put(std::string& out, T number) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
  }
}

template <std::integral T>
T Take(std::string_view& bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    number |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  bytes.remove_prefix(sizeof(T));
  return static_cast<T>(number);
}

void Put(std::string& out, const Sha256Digest& digest) {
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

Sha256Digest TakeDigest(std::string_view& bytes) {
  Sha256Digest digest;
  std::memcpy(digest.data(), bytes.data(), digest.size());
  bytes.remove_prefix(digest.size());
  return digest;
}

/// What there may be an entry of.
bool IsKept(Code code) {
  return code == Code::kInvalidArgument || code == Code::kResourceExhausted ||
         code == Code::kInternal;
}

std::string EncodeUnhashed(const EntryHeader& header) {
  std::string out(kMagic);
  Put(out, kEntryFormat);
  Put(out, header.failure == Code::kOk ? static_cast<uint32_t>(header.kind) : kFailed);
  Put(out, static_cast<uint32_t>(header.failure));
  Put(out, uint32_t{0});
  Put(out, header.made_at);
  Put(out, header.kept_until);
  Put(out, header.length);
  Put(out, header.id.module);
  Put(out, header.id.compiler);
  return out;
}

/// What the file is: `kind` and `code` as they stand in it.
Status TakeContent(uint32_t kind, uint32_t code, EntryHeader& header) {
  if (kind == kFailed) {
    header.failure = static_cast<Code>(code);
    if (!IsKept(header.failure)) {
      return Fail(Code::kDataLoss, "no error of code {} is kept", code);
    }
    return {};
  }
  if (kind > static_cast<uint32_t>(Kind::kProxy) || code != 0) {
    return Fail(Code::kDataLoss, "its content is of an unknown kind {}", kind);
  }
  header.kind = static_cast<Kind>(kind);
  return {};
}

}  // namespace

std::string EntryId::Key() const {
  std::string text("gantry wasm artifact");
  Put(text, kEntryFormat);
  Put(text, module);
  Put(text, compiler);
  return HexOf(Sha256Of(text));
}

void EntryHeader::AddTo(Sha256& hashed) const { hashed.Add(EncodeUnhashed(*this)); }

std::string EntryHeader::Encode() const {
  std::string out = EncodeUnhashed(*this);
  Put(out, hash);
  return out;
}

Result<EntryHeader> EntryHeader::Decode(std::string_view bytes) {
  if (bytes.size() < kSize) {
    return Fail(Code::kDataLoss, "it is cut off after {} bytes", bytes.size());
  }
  if (!bytes.starts_with(kMagic)) {
    return Fail(Code::kDataLoss, "it is no file of the cache");
  }
  bytes.remove_prefix(kMagic.size());
  if (const auto format = Take<uint32_t>(bytes); format != kEntryFormat) {
    return Fail(Code::kDataLoss, "it has format {}, not {}", format, kEntryFormat);
  }
  EntryHeader header;
  const auto kind = Take<uint32_t>(bytes);
  const auto code = Take<uint32_t>(bytes);
  GANTRY_CHECK_OK(TakeContent(kind, code, header));
  if (Take<uint32_t>(bytes) != 0) {
    return Fail(Code::kDataLoss, "its header has bits that mean nothing");
  }
  header.made_at = Take<int64_t>(bytes);
  header.kept_until = Take<int64_t>(bytes);
  header.length = Take<uint64_t>(bytes);
  header.id.module = TakeDigest(bytes);
  header.id.compiler = TakeDigest(bytes);
  header.hash = TakeDigest(bytes);
  const uint64_t most = header.failure == Code::kOk ? kMaxContent : kMaxText;
  if (header.length == 0 || header.length > most) {
    return Fail(Code::kDataLoss, "it says that it has {} bytes, from 1 to {} are possible",
                header.length, most);
  }
  return header;
}

}  // namespace gantry::wasm
