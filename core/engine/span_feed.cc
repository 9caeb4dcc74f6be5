// SPDX-License-Identifier: Apache-2.0
#include "core/engine/span_feed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "core/link/span_api.h"
#include "core/rpc/ttrpc.h"
#include "core/rpc/typed.h"

namespace gantry::engine {
namespace {

/// Of one answer, which has 4 MiB: a span has at most six texts of 512 bytes.
constexpr size_t kMostSpansAtOnce = 512;
constexpr std::chrono::milliseconds kLongestSpanWait = std::chrono::minutes(1);

template <size_t N>
std::string BytesOf(const std::array<uint8_t, N>& id) {
  return {id.begin(), id.end()};
}

/// Protobuf refuses a message with text that is none: ids and causes come from elsewhere.
std::string TextOf(const std::string& text) { return rpc::CleanText(text); }

void Fill(v1::Span& out, const trace::Span& span) {
  out.set_trace_id(BytesOf(span.context.trace));
  out.set_span_id(BytesOf(span.context.span));
  if (span.parent != trace::SpanId{}) {
    out.set_parent_span_id(BytesOf(span.parent));
  }
  out.set_trace_state(span.context.state);
  out.set_kind(std::string(trace::KindName(span.kind)));
  out.set_what(TextOf(span.what));
  out.set_namespace_(TextOf(span.ns));
  out.set_id(TextOf(span.id));
  out.set_exec_id(TextOf(span.exec));
  out.set_begun_ns(span.begun_ns);
  out.set_took_ns(span.end.took_ns);
  out.set_waited_ns(span.end.waited_ns);
  out.set_code(static_cast<int32_t>(span.end.code));
  out.set_detail(TextOf(span.end.detail));
  out.set_again(span.again);
}

}  // namespace

SpanFeed::SpanFeed(async::Loop& loop, trace::Spans& spans) : loop_(loop), spans_(spans) {
  spans_.OnAdded([this] { WakeAll(); });
}

SpanFeed::~SpanFeed() { spans_.OnAdded({}); }

Status SpanFeed::Register(rpc::MethodTable& table) {
  return rpc::AddTyped<v1::TakeSpansRequest, v1::TakeSpansResponse>(
      table, span_api::kService, span_api::kTake,
      [this](const rpc::CallContext& call, v1::TakeSpansRequest request) {
        return Take(call, std::move(request));
      });
}

void SpanFeed::WakeAll() {
  if (waits_.empty()) {
    return;
  }
  for (auto& [number, wait] : std::exchange(waits_, {})) {
    wait.Set();
  }
}

async::Task<Result<v1::TakeSpansResponse>> SpanFeed::Take(const rpc::CallContext& call,
                                                          v1::TakeSpansRequest request) {
  spans_.counters().exported += request.exported();
  spans_.counters().refused += request.refused();
  const async::TimePoint until =
      loop_.Now() + std::min(std::chrono::milliseconds(request.wait_ms()), kLongestSpanWait);
  while (spans_.waiting() == 0 && loop_.Now() < until && !call.abandonment->happened()) {
    const uint64_t number = next_wait_++;
    const async::OneShot<void> wait = waits_[number];
    call.abandonment->Park([own = wait]() mutable { own.Set(); });
    co_await wait.WaitFor(loop_, until - loop_.Now());
    waits_.erase(number);
  }
  v1::TakeSpansResponse response;
  response.set_dropped(spans_.counters().dropped);
  if (call.abandonment->happened()) {
    co_return response;
  }
  const size_t most = request.most() == 0 ? kMostSpansAtOnce : request.most();
  for (const trace::Span& span : spans_.Take(std::min(most, kMostSpansAtOnce))) {
    Fill(*response.add_spans(), span);
  }
  co_return response;
}

}  // namespace gantry::engine
