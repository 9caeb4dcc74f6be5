// SPDX-License-Identifier: Apache-2.0
#include "core/trace/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/log/log.h"
#include "core/trace/ring.h"

namespace gantry::trace {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

off_t OffsetOf(uint64_t number) { return static_cast<off_t>((1 + number % kSlots) * kSlotBytes); }

}  // namespace

void OpenStep::Ended(Code code, std::string_view detail) const {
  if (recorder_ == nullptr) {
    return;
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun_;
  recorder_->End(*this, {took.count(), waited_.count(), code, std::string(detail)});
}

Status Recorder::Open(const std::string& run_dir) {
  const std::string path = run_dir + "/" + kFileName;
  ring_ = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!ring_) {
    return FailErrno(errno, "open '{}'", path);
  }
  Status ready = Continue(path);
  if (!ready) {
    ring_ = {};
  }
  return ready;
}

Status Recorder::Continue(const std::string& path) {
  const auto steps = ReadRing(ring_.get());
  if (steps) {
    for (const Step& step : *steps) {
      next_ = std::max(next_, step.number + 1);
    }
    return {};
  }
  const std::string head = EncodeHead();
  if (ftruncate(ring_.get(), 0) != 0 ||
      pwrite(ring_.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) {
    return FailErrno(errno, "begin '{}'", path);
  }
  return {};
}

OpenStep Recorder::Begin(Kind kind, const Subject& subject, std::string_view what, bool again,
                         const SpanContext* caller) {
  OpenStep step;
  if (!ring_ && spans_ == nullptr) {
    return step;
  }
  step.recorder_ = this;
  step.begun_ = std::chrono::steady_clock::now();
  const int64_t now = NowNs();
  if (spans_ != nullptr) {
    step.span_ = spans_->Begin({.kind = kind,
                                .subject = subject,
                                .what = what,
                                .again = again,
                                .begun_ns = now,
                                .caller = caller});
  }
  if (ring_) {
    step.number_ = next_++;
    const std::string bytes = EncodeBegin(step.number_, now, kind, again, subject, what);
    step.begin_bytes_ = bytes.size();
    Write(step.number_, 0, bytes);
  }
  return step;
}

OpenStep Recorder::BeginUnrecorded(Kind kind, const Subject& subject, std::string_view what,
                                   const SpanContext& caller) {
  OpenStep step;
  if (spans_ != nullptr && caller.sampled) {
    step.recorder_ = this;
    step.begun_ = std::chrono::steady_clock::now();
    step.span_ = spans_->Begin({.kind = kind,
                                .subject = subject,
                                .what = what,
                                .begun_ns = NowNs(),
                                .caller = &caller,
                                .has_children = false});
  }
  return step;
}

void Recorder::Note(Kind kind, const Subject& subject, std::string_view what, Code code,
                    std::string_view detail, std::chrono::nanoseconds took) {
  const int64_t begun = NowNs() - took.count();
  if (spans_ != nullptr) {
    const OpenSpanPtr span = spans_->Begin({.kind = kind,
                                            .subject = subject,
                                            .what = what,
                                            .begun_ns = begun,
                                            .has_children = false,
                                            .is_note = true});
    spans_->End(*span, {took.count(), 0, code, std::string(detail)});
  }
  if (!ring_) {
    return;
  }
  const uint64_t number = next_++;
  std::string bytes = EncodeBegin(number, begun, kind, false, subject, what);
  bytes += EncodeEnd(number, bytes.size(), {took.count(), 0, code, std::string(detail)});
  Write(number, 0, bytes);
}

void Recorder::End(const OpenStep& step, const struct End& end) {
  if (step.span_ && spans_ != nullptr) {
    spans_->End(*step.span_, end);
  }
  if (step.number_ != 0 && next_ - step.number_ <= kSlots) {
    Write(step.number_, step.begin_bytes_, EncodeEnd(step.number_, step.begin_bytes_, end));
  }
}

/// One that failed is not tried again: nothing must wait for this.
void Recorder::Write(uint64_t number, size_t offset, std::string_view bytes) {
  const off_t at = OffsetOf(number) + static_cast<off_t>(offset);
  if (pwrite(ring_.get(), bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size())) {
    if (lost_++ == 0) {
      LogWarning("write a step into '{}': {}; gantryctl trace will not show all", kFileName,
                 ErrnoName(errno));
    }
  }
}

}  // namespace gantry::trace
