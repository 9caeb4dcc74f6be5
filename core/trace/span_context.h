// SPDX-License-Identifier: Apache-2.0
//
// Which trace a call of somebody else belongs to, as W3C Trace Context says it in `traceparent` and
// `tracestate`. containerd's clients put both into the metadata of a call, be it ttrpc's or gRPC's.
// Source: w3.org/TR/trace-context-1, sections 3.2 and 3.3; containerd/otelttrpc,
// metadata_supplier.go.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::trace {

inline constexpr std::string_view kTraceparentKey = "traceparent";
inline constexpr std::string_view kTracestateKey = "tracestate";

/// A longer `tracestate` is left out, as the specification allows.
inline constexpr size_t kMaxTracestate = 512;
/// A longer `traceparent` is none, whatever its version.
inline constexpr size_t kMaxTraceparent = 256;

/// All zero: none.
using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct SpanContext {
  TraceId trace{};
  SpanId span{};
  /// Who began the trace wants it kept.
  bool sampled = false;
  /// Passed on as it is: printable ASCII, at most `kMaxTracestate` bytes.
  std::string state{};

  bool operator==(const SpanContext&) const = default;
};

/// What a caller says of himself. Nothing: no trace, or bytes that are none. Of a version that is
/// not known the parts are read that all versions have.
std::optional<SpanContext> ParseTraceparent(std::string_view traceparent,
                                            std::string_view tracestate);

}  // namespace gantry::trace
