// SPDX-License-Identifier: Apache-2.0
//
// Sentries that wait for pods: `warm` of each handler. One thread boots them, one after the
// other, sees which have ended, and lets go of those whose build of runsc has been replaced.
//
// No pod waits for it: a pod takes what is ready, or boots its own. While sandboxes are being
// started, and a moment after, none is booted, so that they have the machine for themselves; but
// not for ever, or a busy node would never have one ready. What fails, be it that one cannot be
// booted or that it ends while it waits, is tried again later and later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gantry/backend.h>
#include <gantry/context.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/warm/warm_entry.h"
#include "plugins/gvisor/warm/warm_folder.h"

namespace gantry::gvisor {

/// Of all handlers together; those that come last get less.
inline constexpr uint32_t kMaxWarmOfAll = 256;

/// How long things take. Tests have others.
struct WarmTimes {
  /// Since a sandbox has been started.
  std::chrono::milliseconds quiet{100};
  /// However busy it is.
  std::chrono::milliseconds patience{2000};
  /// After a failure; each further one doubles it.
  std::chrono::milliseconds first_pause{1000};
  std::chrono::milliseconds longest_pause{300'000};
  /// The end of one that has waited so long is no failure after others.
  std::chrono::milliseconds long_life{60'000};
};

/// How they are made. Thread: the pool's.
struct WarmMaker {
  std::function<Result<WarmEntry>(const WarmHandler&, const std::string& folder,
                                  const WarmSpawned& spawned)>
      boot;
  /// Of a key: of the files as they are now. Errors: there is none.
  std::function<Result<std::string>(const WarmHandler&)> build;
};

/// The real one. `context` must outlive it.
WarmMaker MakeWarmMaker(SandboxContext& context, const std::shared_ptr<Runscs>& runscs);

/// Thread: any.
class WarmPool {
 public:
  /// Begins at once. `handlers`: those with `warm` above 0. `context`: for the log.
  WarmPool(SandboxContext& context, std::vector<WarmHandler> handlers, WarmMaker maker,
           WarmTimes times = {});
  WarmPool(const WarmPool&) = delete;
  WarmPool& operator=(const WarmPool&) = delete;
  /// Blocks: until what is being booted is, or is not.
  ~WarmPool();

  struct Taken {
    std::optional<WarmEntry> entry;
    /// Whose it was.
    std::string handler;
    /// Why there is none.
    std::string_view missing;
  };

  /// As long as it lives a sandbox is being started, or something in one. Blocks: never.
  class Starting {
   public:
    /// Null: there is no pool.
    explicit Starting(WarmPool* pool);
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;
    ~Starting();

    /// One that a pod of that key may have; from now on it is the caller's, who says whether it
    /// was of use.
    Taken Take(const WarmKey& key);
    void Report(const std::string& handler, bool of_use);

   private:
    WarmPool* const pool_;
  };

  std::vector<BackendCount> Counts() const;

  /// Waits until `what` holds of its counts. False: not within `limit`.
  bool AwaitForTest(const std::function<bool(const std::vector<BackendCount>&)>& what,
                    std::chrono::milliseconds limit);

  /// Ends all that wait, without waiting for that. No other is booted.
  void Leave();

 private:
  using Clock = std::chrono::steady_clock;

  struct Ready {
    WarmEntry entry;
    /// None: it has ended before there could be one.
    UniqueFd pidfd;
    Clock::time_point since;

    bool HasEnded() const;
  };

  struct Lane {
    WarmHandler handler;
    uint32_t wanted = 0;
    std::deque<Ready> ready;
    bool booting = false;
    uint32_t failures = 0;
    /// For booting, and for taking where one that was taken was of no use.
    Clock::time_point not_before{};
    Clock::time_point useless_until{};
    /// Since when one could be booted.
    std::optional<Clock::time_point> due;
    uint64_t taken = 0;
    uint64_t failed = 0;
  };

  Taken Take(const WarmKey& key);
  std::vector<BackendCount> CountLocked() const;
  bool IsLeaving() const;
  void Run();
  /// Lets go of those that have ended, or whose build is another by now.
  void Sort();
  std::vector<Ready> TakeOut(Lane& lane, const std::string& build);
  /// The one that is to be filled now; else, when to look again.
  Lane* Next(std::optional<Clock::time_point>& look_again);
  void Fill(Lane& lane);
  Result<WarmEntry> Boot(const Lane& lane);
  void Enter(Lane& lane, Result<WarmEntry> booted);
  /// Waits for an end, for `Wake`, or for the time.
  void Wait(std::optional<Clock::time_point> until);
  void Wake() const;
  /// With the lock held.
  std::chrono::milliseconds Postpone(Lane& lane);
  Result<std::string> NewFolder(const std::string& root);

  SandboxContext& context_;
  const WarmMaker maker_;
  const WarmTimes times_;
  UniqueFd wake_;
  /// By the option `root`. The thread's.
  std::map<std::string, std::unique_ptr<WarmFolder>> folders_;
  /// Guards what follows. The lanes themselves, and their handlers, stay as they are.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Lane> lanes_;
  std::shared_ptr<HostProcess> booting_;
  /// Of `folders_`.
  std::vector<std::string> paths_;
  uint32_t starting_ = 0;
  Clock::time_point quiet_from_{};
  bool leaving_ = false;
  /// Last: it uses all else.
  std::thread thread_;
};

}  // namespace gantry::gvisor
