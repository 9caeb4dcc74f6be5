// SPDX-License-Identifier: Apache-2.0
#include "core/trace/spans.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <span>
#include <utility>

#include "core/trace/open_spans.h"

namespace gantry::trace {
namespace {

constexpr int kByteBits = 8;
constexpr size_t kWordBytes = 8;
/// 2^63: what a ratio is a part of.
constexpr double kWholeRatio = 9223372036854775808.0;

std::function<uint64_t()> SeededGenerator() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device()};
  return std::mt19937_64(seed);
}

SpanOptions WithRandom(SpanOptions options) {
  if (!options.random) {
    options.random = SeededGenerator();
  }
  return options;
}

/// Decided by the trace's own id, so that who asks about it anew decides the same. Source:
/// opentelemetry.io, specs/otel/trace/sdk, TraceIdRatioBased.
bool IsKept(const TraceId& trace, double ratio) {
  uint64_t word = 0;
  for (const uint8_t byte : std::span(trace).last<kWordBytes>()) {
    word = word << kByteBits | byte;
  }
  return word >> 1 < static_cast<uint64_t>(ratio * kWholeRatio);
}

std::string Cut(std::string_view text) { return std::string(text.substr(0, kMaxSpanText)); }

/// It can be what a step of a backend, or an event, happens in.
bool HasChildren(const Spans::Beginning& beginning) {
  if (!beginning.has_children) {
    return false;
  }
  switch (beginning.kind) {
    case Kind::kCall:
      return beginning.what != "Wait" && beginning.what != "WaitSandbox";
    case Kind::kExit:
    case Kind::kKeeper:
    case Kind::kRecovery:
      return true;
    case Kind::kBackend:
    case Kind::kEvent:
    case Kind::kEngine:
      return false;
  }
  return false;
}

bool IsChild(const Spans::Beginning& beginning) {
  return beginning.is_note || beginning.kind == Kind::kBackend || beginning.kind == Kind::kEvent;
}

}  // namespace

OpenSpan::OpenSpan(std::shared_ptr<OpenSpans> table, Span begun)
    : table_(std::move(table)), span_(std::move(begun)) {
  if (table_) {
    table_->Add(*this);
  }
}

OpenSpan::~OpenSpan() {
  if (table_ && !ended_) {
    table_->Remove(*this);
  }
}

Spans::Spans(SpanOptions options)
    : options_(WithRandom(std::move(options))), open_(std::make_shared<OpenSpans>()) {}

template <size_t N>
std::array<uint8_t, N> Spans::RandomId() {
  std::array<uint8_t, N> id{};
  while (id == std::array<uint8_t, N>{}) {
    for (size_t i = 0; i < N; i += kWordBytes) {
      const uint64_t word = options_.random();
      for (size_t at = 0; at < kWordBytes; ++at) {
        id.at(i + at) = static_cast<uint8_t>(word >> (kByteBits * at));
      }
    }
  }
  return id;
}

void Spans::Place(const Beginning& beginning, Span& span) {
  const OpenSpan* const within = IsChild(beginning) && !beginning.subject.id.empty()
                                     ? open_->Find(beginning.subject)
                                     : nullptr;
  if (beginning.caller != nullptr || within != nullptr) {
    span.context = beginning.caller != nullptr ? *beginning.caller : within->span_.context;
    span.parent = std::exchange(span.context.span, RandomId<sizeof(SpanId)>());
    return;
  }
  span.context.trace = RandomId<sizeof(TraceId)>();
  span.context.span = RandomId<sizeof(SpanId)>();
  span.context.sampled = IsKept(span.context.trace, options_.sample);
}

OpenSpanPtr Spans::Begin(const Beginning& beginning) {
  Span span;
  Place(beginning, span);
  span.kind = beginning.kind;
  span.again = beginning.again;
  span.ns = Cut(beginning.subject.ns);
  span.id = Cut(beginning.subject.id);
  span.exec = Cut(beginning.subject.exec);
  span.what = Cut(beginning.what);
  span.begun_ns = beginning.begun_ns;
  const bool listed = HasChildren(beginning) && !beginning.subject.id.empty();
  return std::make_shared<OpenSpan>(listed ? open_ : nullptr, std::move(span));
}

void Spans::End(OpenSpan& span, struct End end) {
  if (std::exchange(span.ended_, true)) {
    return;
  }
  if (span.table_) {
    span.table_->Remove(span);
  }
  if (!span.span_.context.sampled) {
    return;
  }
  if (waiting_.size() >= options_.most) {
    waiting_.pop_front();
    ++counters_.dropped;
  }
  end.detail = Cut(end.detail);
  span.span_.end = std::move(end);
  waiting_.push_back(std::move(span.span_));
  if (added_) {
    added_();
  }
}

std::vector<Span> Spans::Take(size_t most) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
  std::vector<Span> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

}  // namespace gantry::trace
