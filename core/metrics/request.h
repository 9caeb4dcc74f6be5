// SPDX-License-Identifier: Apache-2.0
//
// What a scraper asks, out of the head of an HTTP/1 request. Boost.Beast reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/metrics/text.h"

namespace gantry::metrics {

/// The longest head that is read.
inline constexpr size_t kMaxHeadBytes = 8192;

struct Request {
  /// 200, or an error's. 0: the head is not whole.
  int status = 0;
  /// Of an error: what is wrong, for who asks.
  std::string complaint;
  /// The length of the head; what follows is the next request.
  size_t bytes = 0;
  /// The answer is to have no body.
  bool head_only = false;
  /// Another request may follow. After an error none does.
  bool keep_alive = false;
  TextFormat format = TextFormat::kPrometheus;
};

/// `arrived`: from the first byte of a request on. Thread: any.
Request ReadRequest(std::string_view arrived);

/// Which of the two suits an Accept header: OpenMetrics where that is named, and not less welcome
/// than text. Absent, or neither of them: text.
TextFormat FormatFor(std::string_view accept);

}  // namespace gantry::metrics
