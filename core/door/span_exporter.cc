// SPDX-License-Identifier: Apache-2.0
#include "core/door/span_exporter.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/log/log.h"
#include "core/rpc/typed.h"
#include "proto/opentelemetry/trace_service.pb.h"

namespace gantry::door {
namespace {

/// Of one request: what a collector takes as a rule has 4 MiB.
constexpr uint32_t kMostSpansOfARequest = 512;
/// Until the engine answers that there is none.
constexpr std::chrono::milliseconds kFirstSpan = std::chrono::seconds(30);
/// What follows a span within this time goes with it.
constexpr std::chrono::seconds kTogether(1);
constexpr Backoff::Terms kEnginePauses{
    .no_event = "an engine that cannot give spans does not say when it can",
    .first = std::chrono::milliseconds(100),
    .longest = std::chrono::seconds(30)};
constexpr Backoff::Terms kCollectorPauses{
    .no_event = "a collector that does not take spans does not say when it will",
    .first = std::chrono::milliseconds(500),
    .longest = std::chrono::seconds(30)};

/// Source: opentelemetry.io, specs/otlp 1.3, "Failures". RESOURCE_EXHAUSTED is to be tried again
/// only where the answer says so in its details, which are not read here: with the pauses there
/// are it does no harm.
bool IsPassing(Code code) {
  constexpr std::array kPassing = {
      Code::kCanceled, Code::kDeadlineExceeded, Code::kAborted,          Code::kOutOfRange,
      Code::kDataLoss, Code::kUnavailable,      Code::kResourceExhausted};
  return std::ranges::contains(kPassing, code);
}

}  // namespace

SpanExporter::SpanExporter(async::Loop& loop, TakeSpans take, Collector& collector, Sender sender)
    : loop_(loop),
      take_(std::move(take)),
      collector_(collector),
      sender_(std::move(sender)),
      engine_pause_(kEnginePauses) {}

async::Task<void> SpanExporter::Run() {
  while (!stopped_) {
    std::vector<v1::Span> spans = co_await Gather();
    if (!spans.empty()) {
      co_await Send(std::move(spans));
    }
  }
}

async::Task<Result<v1::TakeSpansResponse>> SpanExporter::Take(uint32_t wait_ms, uint32_t most) {
  v1::TakeSpansRequest request;
  request.set_wait_ms(wait_ms);
  request.set_most(most);
  request.set_exported(std::exchange(exported_, 0));
  request.set_refused(std::exchange(refused_, 0));
  Result<v1::TakeSpansResponse> taken = co_await take_(request);
  if (!taken) {
    exported_ += request.exported();
    refused_ += request.refused();
  }
  co_return taken;
}

async::Task<std::vector<v1::Span>> SpanExporter::Gather() {
  std::vector<v1::Span> spans;
  const auto add = [&spans](v1::TakeSpansResponse& taken) {
    for (v1::Span& span : *taken.mutable_spans()) {
      spans.push_back(std::move(span));
    }
  };
  Result<v1::TakeSpansResponse> first =
      co_await Take(static_cast<uint32_t>(kFirstSpan.count()), kMostSpansOfARequest);
  if (!first) {
    TellOfEngine(Standing::kAway, first.error().message);
    co_await async::Sleep(loop_, engine_pause_.Next());
    co_return spans;
  }
  TellOfEngine(Standing::kGood, "");
  engine_pause_ = Backoff(kEnginePauses);
  add(*first);
  if (spans.empty() || spans.size() >= kMostSpansOfARequest) {
    co_return spans;
  }
  co_await async::Sleep(loop_, kTogether);
  const auto room = kMostSpansOfARequest - static_cast<uint32_t>(spans.size());
  if (Result<v1::TakeSpansResponse> more = co_await Take(0, room)) {
    add(*more);
  }
  co_return spans;
}

async::Task<void> SpanExporter::Send(std::vector<v1::Span> spans) {
  const std::string request = EncodeSpans(sender_, spans);
  Backoff pause(kCollectorPauses);
  while (!stopped_) {
    const Result<std::string> answer = co_await collector_.Export(request);
    if (answer || !IsPassing(answer.error().code)) {
      Count(answer, spans.size());
      co_return;
    }
    TellOfCollector(Standing::kAway, answer.error().message);
    co_await async::Sleep(loop_, pause.Next());
  }
}

void SpanExporter::Count(const Result<std::string>& answer, uint64_t sent) {
  if (!answer) {
    refused_ += sent;
    TellOfCollector(Standing::kRefuses, answer.error().message);
    return;
  }
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse response;
  const int64_t told = rpc::ParseMessage(*answer, response)
                           ? response.partial_success().rejected_spans()
                           : int64_t{0};
  const uint64_t refused = std::min(sent, static_cast<uint64_t>(std::max(told, int64_t{0})));
  refused_ += refused;
  exported_ += sent - refused;
  TellOfCollector(refused == 0 ? Standing::kGood : Standing::kRefuses,
                  response.partial_success().error_message());
}

void SpanExporter::TellOfEngine(Standing now, const std::string& why) {
  const Standing before = std::exchange(of_engine_, now);
  if (before == now) {
    return;
  }
  if (now == Standing::kAway) {
    LogWarning("take spans from the engine: {}; it is asked again", why);
  } else if (before != Standing::kUnknown) {
    LogInfo("the engine gives spans again");
  }
}

void SpanExporter::TellOfCollector(Standing now, const std::string& why) {
  const Standing before = std::exchange(of_collector_, now);
  if (before == now) {
    return;
  }
  switch (now) {
    case Standing::kGood:
      LogInfo("the collector takes spans");
      break;
    case Standing::kAway:
      LogWarning(
          "export spans to the collector of tracing.endpoint: {}; it is tried again, and the "
          "oldest spans are dropped where there is no room",
          why);
      break;
    case Standing::kRefuses:
      LogWarning("export spans: the collector of tracing.endpoint refuses them: {}", why);
      break;
    case Standing::kUnknown:
      break;
  }
}

}  // namespace gantry::door
