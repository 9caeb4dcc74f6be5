// SPDX-License-Identifier: Apache-2.0
//
// Spans: the flight recorder's steps for who follows a call through a whole cluster. Each step that
// is sampled becomes one when it ends, and waits here until somebody takes it. There is room for so
// many; the oldest go first, and are counted.
//
// Whose child a step is: a call is its caller's, where he says who he is. A step of a backend, and
// an event, is that of the call, or of the end of a process, that is under way for the same
// container or exec, the last one where there are several. (Calls that only wait for an end are
// not asked: they are under way all the time.) Everything else begins a trace. Whether a trace is
// kept is said by who begins it: the caller, or the ratio that is configured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/span_context.h"
#include "core/trace/step.h"

namespace gantry::trace {

/// A step that has ended. Its texts are at most `kMaxSpanText` bytes each.
struct Span {
  SpanContext context;
  /// All zero: it begins its trace.
  SpanId parent{};
  Kind kind = Kind::kCall;
  /// An engine before this one may have begun it.
  bool again = false;
  std::string ns;
  std::string id;
  std::string exec;
  std::string what;
  /// Since the epoch.
  int64_t begun_ns = 0;
  End end;
};

inline constexpr size_t kMaxSpanText = 512;

class OpenSpans;

/// A step under way. Thread: loop.
class OpenSpan {
 public:
  /// `table`: where its children look for it; null: it has none.
  OpenSpan(std::shared_ptr<OpenSpans> table, Span begun);
  OpenSpan(const OpenSpan&) = delete;
  OpenSpan& operator=(const OpenSpan&) = delete;
  ~OpenSpan();

 private:
  friend class OpenSpans;
  friend class Spans;
  const std::shared_ptr<OpenSpans> table_;
  /// Without an end.
  Span span_;
  bool ended_ = false;
};

using OpenSpanPtr = std::shared_ptr<OpenSpan>;

struct SpanOptions {
  /// Of the traces that begin here, the part that is kept: 0 to 1.
  double sample = 0;
  /// Spans that wait.
  size_t most = 2048;
  /// For tests: where ids come from.
  std::function<uint64_t()> random{};
};

struct SpanCounters {
  /// Gone to make room.
  uint64_t dropped = 0;
  /// What who took them has told of their fate.
  uint64_t exported = 0;
  uint64_t refused = 0;
};

/// Thread: loop. Blocks: never.
class Spans {
 public:
  explicit Spans(SpanOptions options);
  Spans(const Spans&) = delete;
  Spans& operator=(const Spans&) = delete;
  ~Spans() = default;

  /// How a step is begun.
  struct Beginning {
    Kind kind = Kind::kCall;
    Subject subject;
    std::string_view what;
    bool again = false;
    /// Since the epoch.
    int64_t begun_ns = 0;
    /// Who calls. Null: nobody, or he does not say.
    const SpanContext* caller = nullptr;
    /// Something may happen in it that is a child of its own.
    bool has_children = true;
    /// It belongs to what is under way, if anything is, whatever it is one of.
    bool is_note = false;
  };

  /// Never null: of what is not sampled it is known, too, so that its children are not.
  OpenSpanPtr Begin(const Beginning& beginning);
  /// Again: nothing.
  void End(OpenSpan& span, struct End end);

  /// Up to `most` of them, the oldest first. They are the caller's from then on.
  std::vector<Span> Take(size_t most);

  /// Called when one has come. Again: instead of the one before.
  void OnAdded(std::function<void()> added) { added_ = std::move(added); }

  size_t waiting() const { return waiting_.size(); }

  SpanCounters& counters() { return counters_; }

  const SpanCounters& counters() const { return counters_; }

 private:
  /// Its trace and its parent.
  void Place(const Beginning& beginning, Span& span);
  template <size_t N>
  std::array<uint8_t, N> RandomId();

  const SpanOptions options_;
  const std::shared_ptr<OpenSpans> open_;
  std::deque<Span> waiting_;
  SpanCounters counters_;
  std::function<void()> added_;
};

}  // namespace gantry::trace
