// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/digest.h"

#include <gantry/format.h>

namespace gantry::wasm::fetch {
namespace {

constexpr std::string_view kAlgorithm = "sha256:";
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

Result<Sha256Digest> ParseDigest(std::string_view text) {
  const std::string_view shown = text.substr(0, 128);
  if (!text.starts_with(kAlgorithm)) {
    return text.find(':') == std::string_view::npos
               ? Fail(Code::kInvalidArgument, "read digest '{}': no algorithm in front", shown)
               : Fail(Code::kFailedPrecondition, "read digest '{}': only sha256 is known", shown);
  }
  const std::string_view digits = text.substr(kAlgorithm.size());
  Sha256Digest digest;
  if (digits.size() != 2 * digest.size() ||
      digits.find_first_not_of(kDigits) != std::string_view::npos) {
    return Fail(Code::kInvalidArgument, "read digest '{}': not {} hexadecimal digits", shown,
                2 * digest.size());
  }
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] =
        static_cast<uint8_t>(kDigits.find(digits[2 * i]) << 4 | kDigits.find(digits[2 * i + 1]));
  }
  return digest;
}

std::string DigestText(const Sha256Digest& digest) {
  return std::string(kAlgorithm) + HexOf(digest);
}

}  // namespace gantry::wasm::fetch
