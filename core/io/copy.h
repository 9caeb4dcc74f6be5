// SPDX-License-Identifier: Apache-2.0
//
// One copy of the relay: a source, a destination, and which of the two is
// waited for. Internal to core/io; the rules are in relay.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/io/relay.h"

namespace gantry::io {

/// Thread: the relay's.
class Copy : public std::enable_shared_from_this<Copy> {
 public:
  /// `done` is called once, last of all, before the callback of `spec`.
  Copy(async::Loop& loop, CopySpec spec, std::function<void()> done);
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy();

  /// Moves what there is, then waits. Also called by the watches.
  void Run();
  /// Ends as soon as the source is empty.
  void Finish();
  /// Ends when the source has been empty for so long.
  void FinishWhenIdle(async::Duration idle);
  /// Moves what there is now, and makes room for it where the sink is a full pipe.
  void Flush();
  /// Ends without a callback.
  void Abandon();

 private:
  /// The watch on one of the two; none before its first use.
  struct Side {
    async::WatchId watch;
    uint32_t events = 0;
  };

  enum class Step { kMoved, kSourceEmpty, kSinkFull, kEnded };

  Step Move();
  /// None: the source has something.
  std::optional<Step> FillSource();
  /// What is waited for until the source has something.
  int SourceFd() const;
  std::optional<Step> PeekForSignals();
  Step MoveBySplice();
  Step MoveByCopy();
  Step WritePending();
  void Moved(size_t bytes);
  Step Drop();
  Step OnBlocked();
  Step OnError(const Error& error);
  bool SinkWritable() const;
  void OnIdle();
  void WaitFor(Step side);
  void Arm(Side& side, int fd, uint32_t events);
  void End(CopyEnd end);
  void Close();

  async::Loop& loop_;
  CopySpec spec_;
  std::function<void()> done_;
  Side source_watch_;
  Side sink_watch_;
  /// So much is moved at once.
  size_t chunk_bytes_;
  /// The kernel cannot splice this pair.
  bool copying_ = false;
  bool finishing_ = false;
  std::optional<async::Duration> idle_limit_;
  async::TimerId idle_timer_;
  bool dropping_ = false;
  int blocked_in_a_row_ = 0;
  uint64_t dropped_bytes_ = 0;
  /// Only with `copying_`: read, and refused by the destination so far.
  std::array<char, 4096> buffer_{};
  std::span<char> pending_;
};

}  // namespace gantry::io
