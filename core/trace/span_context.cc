// SPDX-License-Identifier: Apache-2.0
#include "core/trace/span_context.h"

#include <algorithm>

namespace gantry::trace {
namespace {

/// "00-", the trace in 32 digits, "-", the span in 16, "-", flags in two.
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kVersion0Bytes = 55;
constexpr uint8_t kInvalidVersion = 0xff;
constexpr uint8_t kSampledFlag = 1;

/// Capital letters are not allowed.
std::optional<uint8_t> HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') {
    return static_cast<uint8_t>(digit - '0');
  }
  if (digit >= 'a' && digit <= 'f') {
    return static_cast<uint8_t>(digit - 'a' + 10);
  }
  return std::nullopt;
}

/// `text` has two digits for each byte that is wanted, or more.
template <size_t N>
std::optional<std::array<uint8_t, N>> HexBytes(std::string_view text) {
  std::array<uint8_t, N> bytes{};
  for (size_t i = 0; i < N; ++i) {
    const std::optional<uint8_t> high = HexDigit(text[2 * i]);
    const std::optional<uint8_t> low = HexDigit(text[2 * i + 1]);
    if (!high || !low) {
      return std::nullopt;
    }
    bytes.at(i) = static_cast<uint8_t>(*high << 4 | *low);
  }
  return bytes;
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool HasItsDashes(std::string_view text) {
  return text[kTraceAt - 1] == '-' && text[kSpanAt - 1] == '-' && text[kFlagsAt - 1] == '-';
}

}  // namespace

std::optional<SpanContext> ParseTraceparent(std::string_view traceparent,
                                            std::string_view tracestate) {
  if (traceparent.size() < kVersion0Bytes || traceparent.size() > kMaxTraceparent ||
      !HasItsDashes(traceparent)) {
    return std::nullopt;
  }
  const auto version = HexBytes<1>(traceparent);
  const auto trace = HexBytes<16>(traceparent.substr(kTraceAt));
  const auto span = HexBytes<8>(traceparent.substr(kSpanAt));
  const auto flags = HexBytes<1>(traceparent.substr(kFlagsAt));
  if (!version || !trace || !span || !flags || (*version)[0] == kInvalidVersion) {
    return std::nullopt;
  }
  const std::string_view more = traceparent.substr(kVersion0Bytes);
  if (!more.empty() && ((*version)[0] == 0 || more.front() != '-')) {
    return std::nullopt;
  }
  if (*trace == TraceId{} || *span == SpanId{}) {
    return std::nullopt;
  }
  SpanContext context{*trace, *span, ((*flags)[0] & kSampledFlag) != 0};
  if (tracestate.size() <= kMaxTracestate && IsPrintable(tracestate)) {
    context.state = tracestate;
  }
  return context;
}

}  // namespace gantry::trace
