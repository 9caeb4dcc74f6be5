// SPDX-License-Identifier: Apache-2.0
//
// Tells when the kernel ran out of memory inside a cgroup. v1: an eventfd on
// memory.oom_control. v2: inotify on memory.events, whose `oom_kill` counter is
// compared with what was seen before.
//
// containerd wants /tasks/oom before the exit of the process that was killed:
// the one who publishes the exit calls `CheckNow()` first, for the notification
// may still be on its way. It reports only what was not reported yet.
//
// The cgroup may be gone by then: systemd removes a scope as soon as it is empty,
// and its counter goes with it. v1: its eventfd still tells. v2: the parent's counter
// has the kills of all below (`oom_kills_below.h`).
#pragma once

#include <functional>
#include <memory>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::async {
class Loop;
}

namespace gantry::cgroup {

/// Watches one cgroup from creation to destruction. Thread: the loop's.
class OomWatch {
 public:
  using Callback = std::move_only_function<void()>;

  /// A watch that does not tell anybody yet. OOM kills of before are not reported.
  /// Errors: kNotFound when the cgroup has no memory controller or is a root.
  /// Thread: any. Blocks: on the cgroup's files.
  static Result<std::unique_ptr<OomWatch>> Open(const Cgroup& cgroup);
  OomWatch(const OomWatch&) = delete;
  OomWatch& operator=(const OomWatch&) = delete;
  ~OomWatch();

  /// From now on `on_oom` is called on the loop's thread, once per notification; it may
  /// destroy the watch. Once. Owner: `loop` must outlive the watch. Thread: the loop's,
  /// as for all below.
  void Begin(async::Loop& loop, Callback on_oom);

  /// Looks at the kernel's counter once more and calls `on_oom` before it
  /// returns if something new happened. Says whether it did. Again: false.
  bool CheckNow();
  /// The same, when the cgroup's process was ended by SIGKILL: of a v2 cgroup that is gone
  /// its parent is asked.
  bool CheckAfterKill();

 private:
  struct State;

  explicit OomWatch(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace gantry::cgroup
