// SPDX-License-Identifier: Apache-2.0
//
// Processes that a backend starts before anybody needs them, and which wait for a sandbox: how
// many of each handler is its option `warm`. One thread makes them, one after the other, sees
// which have ended, and lets go of those that are of another build than new ones would be.
//
// No sandbox waits for it: it takes what is ready, or starts its own. While sandboxes are being
// started, and a moment after, none is made, so that they have the machine for themselves; but
// not for ever, or a busy node would never have one ready. What fails, be it that one cannot be
// made or that it ends while it waits, is tried again later and later.
//
// Each has a directory. Those of one engine lie in one that is locked as long as this engine
// lives: so the next one ends and removes what nobody needs any more, also where keeper and engine
// were killed both and there is no other trace of what they had started.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry {

class PoolFolder;

/// Of all handlers together; those that come last get less.
inline constexpr uint32_t kMaxPooled = 256;

/// For whom processes wait.
struct PoolHandler {
  std::string name;
  /// How many there are to be.
  uint32_t wanted = 0;
  /// An absolute path, below which their directories are; made where it is not there.
  std::string root;
};

/// One that waits, of which a backend knows more. Thread: one at a time.
struct PooledProcess {
  PooledProcess() = default;
  PooledProcess(const PooledProcess&) = delete;
  PooledProcess& operator=(const PooledProcess&) = delete;
  PooledProcess(PooledProcess&&) = default;
  PooledProcess& operator=(PooledProcess&&) = default;
  virtual ~PooledProcess() = default;

  /// Why it has ended, for the log.
  virtual std::string LastWords() const = 0;

  std::shared_ptr<HostProcess> process;
  /// Its directory.
  std::string folder;
  /// What it was made of: `PoolMaker::build` as it was then.
  std::string build;
};

/// From now on it is somebody's: if its engine is killed, it is not ended by that. Again: success.
/// Errors: of the file. Blocks: on files. Thread: any.
Status HandOver(const PooledProcess& one);

/// Ends it and removes its directory. Blocks: until it has ended, for a second at most.
/// Thread: any.
void Discard(const PooledProcess& one);

/// How they are made. Thread: the pool's.
struct PoolMaker {
  /// Told of a process as soon as there is one.
  using Spawned = std::function<void(const std::shared_ptr<HostProcess>&)>;

  /// One for the handler of that number, in an empty directory. When it fails nothing is left of it
  /// but the directory, which then goes.
  std::function<Result<std::unique_ptr<PooledProcess>>(size_t handler, const std::string& folder,
                                                       const Spawned& spawned)>
      make;
  /// What a new one would be made of: one that waits and is of something else is let go.
  /// Errors: of nothing; then all are.
  std::function<Result<std::string>(size_t handler)> build;
};

/// How long things take. Tests have others.
struct PoolTimes {
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

/// Thread: any.
class ProcessPool {
 public:
  /// Begins at once. `handlers`: their places are their numbers. `context`: for the log; must
  /// outlive it.
  ProcessPool(SandboxContext& context, std::vector<PoolHandler> handlers, PoolMaker maker,
              PoolTimes times = {});
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;
  /// Blocks: until what is being made is, or is not.
  ~ProcessPool();

  /// What of one differs from what is wanted, for a log; empty: nothing does.
  using Difference = std::function<std::string_view(const PooledProcess&)>;

  struct Taken {
    /// Null: there is none.
    std::unique_ptr<PooledProcess> process;
    /// Whose it was.
    std::string handler;
    /// Why there is none.
    std::string_view missing;
  };

  /// As long as it lives a sandbox is being started, or something in one. Blocks: never.
  class Starting {
   public:
    /// Null: there is no pool, and nothing to take.
    explicit Starting(ProcessPool* pool);
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;
    ~Starting();

    /// One that does not differ; from now on it is the caller's, who says whether it was of use.
    /// `difference` is called with a lock held: it must not call back, nor block.
    Taken Take(const Difference& difference);
    void Report(const std::string& handler, bool of_use);

   private:
    ProcessPool* const pool_;
  };

  /// By handler: warm_wanted, warm_ready, warm_booting, warm_taken, warm_failed.
  std::vector<BackendCount> Counts() const;

  /// Waits until `what` holds of its counts. False: not within `limit`.
  bool AwaitForTest(const std::function<bool(const std::vector<BackendCount>&)>& what,
                    std::chrono::milliseconds limit);

  /// Ends all that wait, without waiting for that. No other is made.
  void Leave();

 private:
  using Clock = std::chrono::steady_clock;

  struct Ready {
    std::unique_ptr<PooledProcess> held;
    /// None: it has ended before there could be one.
    UniqueFd pidfd;
    Clock::time_point since;

    bool HasEnded() const;
  };

  struct AccountQueue {
    size_t number = 0;
    PoolHandler handler;
    std::deque<Ready> ready;
    bool making = false;
    uint32_t failures = 0;
    /// For making, and for taking where one that was taken was of no use.
    Clock::time_point not_before{};
    Clock::time_point useless_until{};
    /// Since when one could be made.
    std::optional<Clock::time_point> due;
    uint64_t taken = 0;
    uint64_t failed = 0;
  };

  Taken Take(const Difference& difference);
  std::vector<BackendCount> CountLocked() const;
  bool IsLeaving() const;
  void Run();
  /// Lets go of those that have ended, or whose build is another by now.
  void Sort();
  std::vector<Ready> TakeOut(AccountQueue& queue, const std::string& build);
  /// The one that is to be filled now; else, when to look again.
  AccountQueue* Next(std::optional<Clock::time_point>& look_again);
  void Fill(AccountQueue& queue);
  Result<std::unique_ptr<PooledProcess>> Make(const AccountQueue& queue);
  void HaveSpawned(const std::string& folder, const std::shared_ptr<HostProcess>& process);
  void Enter(AccountQueue& queue, Result<std::unique_ptr<PooledProcess>> made);
  /// Waits for an end, for `Wake`, or for the time.
  void Wait(std::optional<Clock::time_point> until);
  void Wake() const;
  /// With the lock held.
  std::chrono::milliseconds Postpone(AccountQueue& queue);
  Result<std::string> NewFolder(const std::string& root);

  SandboxContext& context_;
  const PoolMaker maker_;
  const PoolTimes times_;
  UniqueFd wake_;
  /// By their roots. The thread's.
  std::map<std::string, std::unique_ptr<PoolFolder>> folders_;
  /// Guards what follows. The queues themselves, and their handlers, stay as they are.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AccountQueue> queues_;
  /// The one that is being made.
  std::shared_ptr<HostProcess> making_;
  /// Of `folders_`.
  std::vector<std::string> paths_;
  uint32_t starting_ = 0;
  Clock::time_point quiet_from_{};
  bool leaving_ = false;
  /// Last: it uses all else.
  std::thread thread_;
};

}  // namespace gantry
