// SPDX-License-Identifier: Apache-2.0
//
// One turn calls what is ready in this order: descriptors, those that epoll refused, timers,
// posted functions. What is added meanwhile waits for the next turn, so that none of the four
// starves the others. A callback may end any watch or timer, its own included: each is looked up
// again before its call and is out of its container during the call. An event of a descriptor
// that was closed and opened anew since the kernel reported it is known by its old generation
// and dropped.
#include "core/async/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/async/resume.h"

namespace gantry::async {

namespace {

/// Events that one turn takes from the kernel; the rest wait for the next.
constexpr int kEventsPerTurn = 128;

/// The token of the eventfd; a registration's generation is never 0.
constexpr uint64_t kWakeToken = 0;

constexpr uint32_t kAlwaysReported = EPOLLERR | EPOLLHUP;

uint64_t TokenOf(int fd, uint32_t generation) {
  return static_cast<uint64_t>(generation) << 32 | static_cast<uint32_t>(fd);
}

[[noreturn]] void Die(const char* what) {
  perror(what);
  std::abort();
}

/// Sets the flag while it lives; within another one nothing.
class TurningScope {
 public:
  explicit TurningScope(std::atomic<bool>& turns) : turns_(turns), outer_(turns.exchange(true)) {}

  TurningScope(const TurningScope&) = delete;
  TurningScope& operator=(const TurningScope&) = delete;

  ~TurningScope() { turns_ = outer_; }

 private:
  std::atomic<bool>& turns_;
  const bool outer_;
};

}  // namespace

Loop::Loop(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) {
    Die("gantry: event loop");
  }
  // Edge-triggered: each write wakes, and nobody has to read the counter.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kWakeToken}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) < 0) {
    Die("gantry: event loop");
  }
}

Loop::~Loop() {
  // What a destroyed function owns may call back into the loop, so each leaves
  // its container first.
  while (!watches_.empty()) {
    Unwatch(WatchId{watches_.begin()->first});
  }
  while (!timers_.empty()) {
    auto node = timers_.extract(timers_.begin());
  }
  std::vector<Function> posted;
  {
    const MutexLock lock(mutex_);
    posted.swap(posted_);
  }
}

void Loop::Run() {
  thread_ = std::this_thread::get_id();
  const TurningScope turning(turns_);
  while (!stop_.exchange(false)) {
    RunOnce(std::chrono::milliseconds(-1));
  }
}

void Loop::Stop() {
  stop_ = true;
  const uint64_t one = 1;
  // Fails only where the counter is full, and then the loop is awake.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Loop::Post(Function function) {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    posted_.push_back(std::move(function));
    // It looks at the queue before it waits: only one that waits has to be woken, once.
    wake = waits_.exchange(false);
  }
  if (wake) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }
}

void Loop::DieOffThread(const std::source_location& where) {
  fprintf(stderr, "gantry: %s:%u: '%s' is for the loop's thread only\n", where.file_name(),
          where.line(), where.function_name());
  std::abort();
}

bool Loop::IsLoopThread() const { return thread_.load() == std::this_thread::get_id(); }

TimerId Loop::After(Duration delay, Function function) {
  AssertLoopThread();
  const TimePoint now = Now();
  delay = std::max(delay, Duration::zero());
  const TimePoint due = delay > TimePoint::max() - now ? TimePoint::max() : now + delay;
  const TimerId timer{due, next_serial_++};
  timers_.emplace(timer, std::move(function));
  return timer;
}

std::optional<TimePoint> Loop::NextDue() const {
  return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first.due);
}

void Loop::Cancel(TimerId timer) {
  AssertLoopThread();
  // Out of the map first: what the function owns may call back into the loop.
  auto node = timers_.extract(timer);
}

WatchId Loop::Watch(int fd, uint32_t events, WatchFunction function) {
  AssertLoopThread();
  const uint64_t serial = next_serial_++;
  watches_.emplace(serial, WatchEntry{.fd = fd, .events = events, .function = std::move(function)});
  auto [it, added] = registrations_.try_emplace(fd);
  if (added) {
    it->second.generation = next_generation_;
    next_generation_ = std::max(next_generation_ + 1, 1U);
  }
  // Asks epoll in any case: an older watch's descriptor may be closed by now.
  it->second.mask = 0;
  it->second.serials.push_back(serial);
  UpdateRegistration(fd);
  return WatchId{serial};
}

void Loop::Rearm(WatchId watch, uint32_t events) {
  AssertLoopThread();
  auto it = watches_.find(watch.serial);
  if (it == watches_.end() || it->second.events == events) {
    return;
  }
  it->second.events = events;
  UpdateRegistration(it->second.fd);
}

void Loop::Unwatch(WatchId watch) {
  AssertLoopThread();
  auto node = watches_.extract(watch.serial);
  if (node.empty()) {
    return;
  }
  const int fd = node.mapped().fd;
  std::erase(forced_, watch.serial);
  std::erase(registrations_.at(fd).serials, watch.serial);
  UpdateRegistration(fd);
}

/// Tells epoll what the watches of `fd` want now, and forgets a descriptor
/// without watches.
void Loop::UpdateRegistration(int fd) {
  auto it = registrations_.find(fd);
  Registration& registration = it->second;
  uint32_t mask = 0;
  for (const uint64_t serial : registration.serials) {
    WatchEntry& entry = watches_.at(serial);
    mask |= entry.events;
    if (std::exchange(entry.forced, 0) != 0) {
      std::erase(forced_, serial);
    }
  }
  if (!registration.armed || registration.mask != mask) {
    Arm(fd, registration, mask);
  }
  registration.mask = mask;
  if (registration.serials.empty()) {
    registrations_.erase(it);
  }
}

void Loop::Arm(int fd, Registration& registration, uint32_t mask) {
  if (mask == 0) {
    if (std::exchange(registration.armed, false)) {
      // Fails where the descriptor was closed and so has left epoll by itself.
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    }
    return;
  }
  epoll_event event{.events = mask, .data = {.u64 = TokenOf(fd, registration.generation)}};
  int result = registration.armed ? epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) : -1;
  if (result < 0) {
    result = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  registration.armed = result == 0;
  if (!registration.armed) {
    ForceWatches(registration, errno == EPERM ? 0U : uint32_t{EPOLLERR});
  }
}

void Loop::ForceWatches(const Registration& registration, uint32_t extra) {
  for (const uint64_t serial : registration.serials) {
    WatchEntry& entry = watches_.at(serial);
    if (entry.events != 0) {
      entry.forced = entry.events | extra;
      forced_.push_back(serial);
    }
  }
}

void Loop::SetSlowTurnObserver(Duration threshold, SlowTurnFunction function) {
  slow_threshold_ = threshold;
  on_slow_turn_ = std::move(function);
}

int Loop::WaitMillis(std::chrono::milliseconds max) {
  {
    const MutexLock lock(mutex_);
    if (!posted_.empty()) {
      return 0;
    }
    waits_ = true;
  }
  if (!forced_.empty() || stop_) {
    return 0;
  }
  constexpr int64_t kLongest = std::numeric_limits<int>::max();
  int64_t wait = max.count() < 0 ? -1 : std::min<int64_t>(max.count(), kLongest);
  if (!timers_.empty() && timers_.begin()->first.due != TimePoint::max()) {
    if (const auto left = clock_.Until(timers_.begin()->first.due)) {
      // Rounded up, lest the loop spin through the timer's last millisecond.
      const int64_t millis =
          std::min<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(*left).count(), kLongest);
      wait = wait < 0 ? millis : std::min(wait, millis);
    }
  }
  return static_cast<int>(wait);
}

bool Loop::RunOnce(std::chrono::milliseconds max) {
  thread_ = std::this_thread::get_id();
  const TurningScope turning(turns_);
  epoll_event events[kEventsPerTurn];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerTurn, WaitMillis(max));
  waits_ = false;
  const TimePoint begin = on_slow_turn_ ? Now() : TimePoint{};
  bool called = DispatchEvents(events, count);
  called |= DispatchForced();
  called |= DispatchTimers();
  called |= DispatchPosted();
  if (on_slow_turn_) {
    if (const Duration length = Now() - begin; length >= slow_threshold_) {
      on_slow_turn_(length);
    }
  }
  return called;
}

bool Loop::DispatchEvents(const epoll_event* events, int count) {
  bool called = false;
  std::vector<uint64_t> serials;
  for (int i = 0; i < count; ++i) {
    const uint64_t token = events[i].data.u64;
    if (token == kWakeToken) {
      continue;
    }
    auto it = registrations_.find(static_cast<int>(static_cast<uint32_t>(token)));
    if (it == registrations_.end() || it->second.generation != token >> 32) {
      continue;
    }
    // A copy, since the callbacks may add and end watches of this descriptor.
    serials = it->second.serials;
    for (const uint64_t serial : serials) {
      called |= DispatchWatch(serial, events[i].events);
    }
  }
  return called;
}

bool Loop::DispatchWatch(uint64_t serial, uint32_t ready) {
  auto it = watches_.find(serial);
  if (it == watches_.end() || it->second.events == 0) {
    return false;
  }
  ready &= it->second.events | kAlwaysReported;
  if (ready == 0) {
    return false;
  }
  ResumeScope scope;
  // Out of its entry while it runs, since it may end its own watch.
  WatchFunction function = std::move(it->second.function);
  if (!function) {
    return false;  // It runs already: it turns the loop itself.
  }
  function(ready);
  it = watches_.find(serial);
  if (it != watches_.end()) {
    it->second.function = std::move(function);
  }
  return true;
}

bool Loop::DispatchForced() {
  bool called = false;
  for (const uint64_t serial : std::vector(forced_)) {
    auto it = watches_.find(serial);
    if (it != watches_.end() && it->second.forced != 0) {
      called |= DispatchWatch(serial, it->second.forced);
    }
  }
  return called;
}

bool Loop::DispatchTimers() {
  if (timers_.empty()) {
    return false;
  }
  const TimePoint now = Now();
  // Timers that are added from here on wait for the next turn.
  const uint64_t first_new = next_serial_;
  bool called = false;
  while (!timers_.empty() && timers_.begin()->first.due <= now &&
         timers_.begin()->first.serial < first_new) {
    auto node = timers_.extract(timers_.begin());
    ResumeScope scope;
    node.mapped()();
    called = true;
  }
  return called;
}

bool Loop::DispatchPosted() {
  std::vector<Function> posted;
  {
    const MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (Function& function : posted) {
    ResumeScope scope;
    function();
    function = nullptr;
  }
  return !posted.empty();
}

}  // namespace gantry::async
