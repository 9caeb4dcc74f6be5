// SPDX-License-Identifier: Apache-2.0
//
// A collector of OpenTelemetry's that keeps what it is given: a real gRPC server on a UNIX socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/opentelemetry/trace_service.pb.h"

namespace gantry::test {

using ExportRequest = opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
using ExportResponse = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
using OtlpSpan = opentelemetry::proto::trace::v1::Span;

/// Thread: any.
class CollectorDouble {
 public:
  CollectorDouble();
  CollectorDouble(const CollectorDouble&) = delete;
  CollectorDouble& operator=(const CollectorDouble&) = delete;
  ~CollectorDouble();

  /// Whether it serves at `path` from now on.
  bool Listen(const std::string& path);
  /// Calls under way are cancelled; nobody listens then. Again: nothing.
  void GoAway();

  /// What it answers: a code of gRPC's with `message`; 0: `response`.
  void Answer(int code, const std::string& message, const ExportResponse& response = {});
  /// It takes calls and answers none, until they are given up.
  void HoldAnswers();

  /// The methods that were called, "/SERVICE/METHOD".
  std::vector<std::string> methods() const;
  std::vector<ExportRequest> requests() const;
  /// All spans of all requests that were answered well.
  std::vector<OtlpSpan> spans() const;

 private:
  class Service;

  const std::unique_ptr<Service> service_;
};

/// The text of an attribute, or empty.
std::string TextOf(const OtlpSpan& span, const std::string& key);

}  // namespace gantry::test
