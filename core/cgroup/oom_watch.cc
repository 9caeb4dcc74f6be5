// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/oom_watch.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/notify.h>
#include <gantry/toolkit/cgroup/statistics.h>
#include <gantry/toolkit/files/files.h>

#include "core/async/loop.h"
#include "core/cgroup/oom_kills_below.h"

namespace gantry::cgroup {

// Shared with the callback of the loop, which may end the watch from within.
struct OomWatch::State {
  Cgroup cgroup;
  /// Where it has begun.
  async::Loop* loop = nullptr;
  Callback on_oom;
  async::WatchId watch;
  /// v1: counts the kernel's notifications.
  UniqueFd eventfd;
  /// v2.
  std::optional<CgroupNotify> events;
  /// Of its parent; null: that does not count.
  std::shared_ptr<OomKillsBelow> parent;
  /// OOM kills that were there before or have been reported.
  uint64_t reported = 0;
  /// The cgroup is, and what it has left behind has been looked at.
  bool gone = false;
  /// v1: so many notifications were read since it is gone.
  uint64_t last = 0;
  bool ended = false;

  void Report() {
    // Not from the member: the callback may destroy the watch, or look again.
    Callback call = std::exchange(on_oom, nullptr);
    if (call) {
      call();
    }
    if (!ended) {
      on_oom = std::move(call);
    }
  }

  void End() {
    if (watch) {
      loop->Unwatch(std::exchange(watch, {}));
    }
    ended = true;
  }

  // v1. A notification comes when memory has run out, the kill that it leads to
  // is counted a little later: it is reported now and must not be again.
  bool LookV1() {
    uint64_t notified = 0;
    const bool woken = read(eventfd.get(), &notified, sizeof(notified)) == sizeof(notified);
    const Result<uint64_t> kills = ReadOomKills(cgroup);
    if (!kills) {
      // The last notification of all says that the cgroup has been removed. What came beside it
      // was of memory. Source: Linux 6.12, mm/memcontrol-v1.c, memcg_event_remove.
      last += woken ? notified : 0;
      if (last < 2 || std::exchange(gone, true)) {
        return false;
      }
      loop->Unwatch(std::exchange(watch, {}));
      return true;
    }
    if (*kills > reported) {
      reported = *kills;
      return true;
    }
    if (woken) {
      reported = *kills + 1;
    }
    return woken;
  }

  bool LookV2(CgroupNotify& file, bool killed) {
    const Result<std::string> text = file.Read();
    if (!text) {
      loop->Unwatch(std::exchange(watch, {}));
      return killed && !std::exchange(gone, true) && parent && parent->ClaimOne();
    }
    const uint64_t kills = FieldIn(*text, "oom_kill").value_or(0);
    const uint64_t before = std::exchange(reported, std::max(kills, reported));
    if (parent && kills > before) {
      parent->Claim(kills - before);
    }
    return kills > before;
  }

  bool Check(bool killed) {
    if (ended || !(events ? LookV2(*events, killed) : LookV1())) {
      return false;
    }
    Report();
    return true;
  }
};

namespace {

// Source: Linux, Documentation/admin-guide/cgroup-v1/memory.rst, section 10.
Result<UniqueFd> RegisterV1(const std::string& dir) {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    return FailErrno(errno, "make an eventfd");
  }
  const UniqueFd control(open((dir + "/memory.oom_control").c_str(), O_RDONLY | O_CLOEXEC));
  if (!control) {
    return FailErrno(errno, "open '{}/memory.oom_control'", dir);
  }
  GANTRY_CHECK_OK(
      WriteExisting(dir + "/cgroup.event_control", Format("{} {}", event.get(), control.get())));
  return event;
}

// What is still there when the container's own are removed: with a scope of systemd's goes what
// crun has made in it.
std::string AboveContainer(const std::string& dir) {
  std::string parent = dir.substr(0, dir.rfind('/'));
  if (parent.ends_with(".scope")) {
    parent.resize(parent.rfind('/'));
  }
  return parent;
}

}  // namespace

OomWatch::OomWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

OomWatch::~OomWatch() { state_->End(); }

Result<std::unique_ptr<OomWatch>> OomWatch::Open(const Cgroup& cgroup) {
  auto state = std::make_shared<State>();
  state->cgroup = cgroup;
  const std::string dir = cgroup.DirOf("memory");
  if (cgroup.is_unified()) {
    GANTRY_TRY(CgroupNotify events, CgroupNotify::Open(dir + "/memory.events"));
    GANTRY_TRY(const std::string text, events.Read());
    state->events = std::move(events);
    state->parent = OomKillsBelow::Of(AboveContainer(dir));
    state->reported = FieldIn(text, "oom_kill").value_or(0);
  } else {
    GANTRY_TRY(state->reported, ReadOomKills(cgroup));
    GANTRY_TRY(state->eventfd, RegisterV1(dir));
  }
  return std::unique_ptr<OomWatch>(new OomWatch(std::move(state)));
}

void OomWatch::Begin(async::Loop& loop, Callback on_oom) {
  State& state = *state_;
  state.loop = &loop;
  state.on_oom = std::move(on_oom);
  const int fd = state.events ? state.events->poll_fd() : state.eventfd.get();
  const uint32_t wanted = state.events ? state.events->poll_events() : EPOLLIN;
  state.watch = loop.Watch(fd, wanted, [state = state_](uint32_t) { state->Check(false); });
}

bool OomWatch::CheckNow() {
  // The callback may destroy this object.
  const std::shared_ptr<State> state = state_;
  return state->Check(false);
}

bool OomWatch::CheckAfterKill() {
  const std::shared_ptr<State> state = state_;
  return state->Check(true);
}

}  // namespace gantry::cgroup
