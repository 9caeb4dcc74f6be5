// SPDX-License-Identifier: Apache-2.0
//
// The flight recorder: writes steps into the ring in the run directory as they begin and end. What
// it has written is in the file (and so survives the engine, however that ends) when a call
// returns; it takes one system call, no lock, and no memory of the engine's, since the file is not
// mapped.
//
// Where traces are exported, each step is told to `Spans`, too. Else that costs the look at a
// pointer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/trace/span_context.h"
#include "core/trace/spans.h"
#include "core/trace/step.h"

namespace gantry::trace {

class Recorder;

/// A step that has begun. A copy is the same step. One that is never ended stays open in the ring.
class OpenStep {
 public:
  /// None: ending it does nothing.
  OpenStep() = default;

  explicit operator bool() const { return recorder_ != nullptr; }

  /// How long it waited for a worker, of the time until its end.
  OpenStep& Waited(std::chrono::nanoseconds time) {
    waited_ = time;
    return *this;
  }

  /// It took until now. The last one holds. Nothing, where newer steps have its place already.
  void Ended(Code code, std::string_view detail = {}) const;

  void Ended(const Error& error) const { Ended(error.code, error.message); }

  template <class T>
  void Ended(const Result<T>& result) const {
    result ? Ended(Code::kOk) : Ended(result.error());
  }

  std::chrono::steady_clock::time_point begun() const { return begun_; }

 private:
  friend class Recorder;
  Recorder* recorder_ = nullptr;
  /// 0: it is not in the ring.
  uint64_t number_ = 0;
  size_t begin_bytes_ = 0;
  std::chrono::steady_clock::time_point begun_{};
  std::chrono::nanoseconds waited_{0};
  /// Null where none are exported.
  OpenSpanPtr span_;
};

/// Thread: loop; one at a time writes a ring. Blocks: as a write to the run directory does, as the
/// log's.
class Recorder {
 public:
  /// It records nothing.
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = default;

  /// Goes on with the ring of `run_dir`, behind the last step in it; begins anew where there is
  /// none, or another kind of file. Errors: the errno's; it then records nothing.
  Status Open(const std::string& run_dir);

  /// Makes spans of steps from now on. `spans` outlives every step. Null: of none.
  void Export(Spans* spans) { spans_ = spans; }

  /// Who calls has to be told to Begin.
  bool exports() const { return spans_ != nullptr; }

  /// `caller`: as he says of himself; null: he does not, or it is no call.
  OpenStep Begin(Kind kind, const Subject& subject, std::string_view what, bool again = false,
                 const SpanContext* caller = nullptr);
  /// One that is only a span, and that only where its caller wants it: nothing for the ring.
  OpenStep BeginUnrecorded(Kind kind, const Subject& subject, std::string_view what,
                           const SpanContext& caller);
  /// Something that takes no time, or has taken `took`.
  void Note(Kind kind, const Subject& subject, std::string_view what, Code code = Code::kOk,
            std::string_view detail = {}, std::chrono::nanoseconds took = {});

  /// Writes that failed.
  uint64_t lost() const { return lost_; }

 private:
  friend class OpenStep;
  Status Continue(const std::string& path);
  void End(const OpenStep& step, const struct End& end);
  void Write(uint64_t number, size_t offset, std::string_view bytes);

  UniqueFd ring_;
  Spans* spans_ = nullptr;
  /// Of the next step.
  uint64_t next_ = 1;
  uint64_t lost_ = 0;
};

}  // namespace gantry::trace
