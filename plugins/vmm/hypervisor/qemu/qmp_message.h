// SPDX-License-Identifier: Apache-2.0
//
// What QEMU writes to its monitor, one JSON object a line: a greeting, answers, and events between
// them. QEMU runs what a guest makes it run, so its words are those of a stranger.
// Source: QEMU 10.0, docs/interop/qmp-spec.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/json.h>

#include "plugins/vmm/hypervisor/json.h"

namespace gantry::vmm {

/// The longest answers that the driver asks for list some hundred CPUs.
inline constexpr JsonLimits kQmpLimits = {.bytes = size_t{1} << 20, .depth = 32, .values = 20'000};

struct QmpMessage {
  enum class Kind { kGreeting, kEvent, kReturn, kError };
  Kind kind = Kind::kGreeting;
  /// Of an answer; none: QEMU did not understand the request.
  std::optional<uint64_t> id;
  /// An event's, or an error's class.
  std::string name;
  /// An error's.
  std::string text;
  /// What is returned, an event's data, the greeting.
  Json value;
};

/// Errors: kDataLoss: it is no such message, or beyond `limits`.
Result<QmpMessage> ParseQmp(std::string_view line, const JsonLimits& limits = kQmpLimits);

/// Lines out of a stream, each bounded. Thread: one.
class QmpLines {
 public:
  explicit QmpLines(size_t most) : most_(most) {}

  /// Where what is received is put.
  std::string& buffer() { return buffer_; }

  /// The next whole line. Errors: kDataLoss: one that is longer than it may be.
  Result<std::optional<std::string>> Next();

 private:
  size_t most_;
  std::string buffer_;
  size_t looked_at_ = 0;
};

}  // namespace gantry::vmm
