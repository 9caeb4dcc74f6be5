// SPDX-License-Identifier: Apache-2.0
//
// The engine's spans as OTLP has them: names, kinds and attributes.
#pragma once

#include <string>
#include <vector>

#include "proto/gantry/spans.pb.h"

namespace gantry::door {

/// Who sends them.
struct Sender {
  /// gantry's.
  std::string version;
  /// The node's.
  std::string host;
};

/// An ExportTraceServiceRequest, as bytes.
std::string EncodeSpans(const Sender& sender, const std::vector<v1::Span>& spans);

}  // namespace gantry::door
