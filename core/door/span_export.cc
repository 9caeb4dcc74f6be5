// SPDX-License-Identifier: Apache-2.0
#include "core/door/span_export.h"

#include <sys/utsname.h>

#include <chrono>
#include <utility>

#include "core/link/span_api.h"
#include "core/rpc/ttrpc.h"
#include "core/rpc/typed.h"

namespace gantry::door {
namespace {

/// Of the engine, beyond what it waits: one that restarts is back within a second.
constexpr std::chrono::seconds kTakeLimit(30);
/// Of one request to the collector. Source: opentelemetry.io, OTEL_EXPORTER_OTLP_TIMEOUT.
constexpr std::chrono::seconds kExportLimit(10);

std::string HostName() {
  utsname node{};
  return uname(&node) == 0 ? rpc::CleanText(node.nodename) : std::string();
}

}  // namespace

SpanExport::SpanExport(async::Loop& loop, const std::string& run_dir, const std::string& target,
                       std::string version)
    : engine_(loop, run_dir),
      collector_(loop, target, kExportLimit),
      exporter_(loop, [this](v1::TakeSpansRequest request) { return Take(std::move(request)); },
                collector_, {std::move(version), HostName()}) {
  async::Start(exporter_.Run());
}

async::Task<Result<v1::TakeSpansResponse>> SpanExport::Take(v1::TakeSpansRequest request) {
  const auto limit = std::chrono::milliseconds(request.wait_ms()) + kTakeLimit;
  GANTRY_CO_TRY(const std::string answer, co_await engine_.Ask(span_api::kService, span_api::kTake,
                                                               request.SerializeAsString(), limit));
  v1::TakeSpansResponse response;
  GANTRY_CO_CHECK_OK(rpc::ParseMessage(answer, response));
  co_return response;
}

}  // namespace gantry::door
