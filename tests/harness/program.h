// SPDX-License-Identifier: Apache-2.0
//
// A program that a test runs and talks to: its stdio on pipes or on a
// terminal, everything it says kept, every wait bounded.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/unique_fd.h>

namespace gantry::e2e {

using Duration = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// `limit` times $GANTRY_TEST_SLOWNESS, which is set where machines are slower than
/// limits are made for: in a guest without KVM.
inline Duration Bound(Duration limit) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* const slowness = std::getenv("GANTRY_TEST_SLOWNESS");
  const int factor = slowness == nullptr ? 1 : std::atoi(slowness);
  return limit * (factor > 1 ? factor : 1);
}

/// How long a test waits for an event that must come.
inline const Duration kDeadline = Bound(std::chrono::seconds(30));
/// The same where there is much to do: many containers, much data.
inline const Duration kLong = Bound(std::chrono::seconds(120));

/// What a program left behind. `status` is its exit code, 128 + signal, or
/// kTimedOut.
struct Output {
  static constexpr int kTimedOut = -1;

  int status = 0;
  std::string out;
  std::string err;

  /// For a failed expectation: status and the end of both streams.
  std::string Text() const;
};

/// Thread: the test's. Owner: of the child; the destructor kills and reaps it.
class Program {
 public:
  struct Options {
    /// Stdio on a new terminal of `rows` x `columns` instead of pipes.
    bool terminal = false;
    unsigned short rows = 24;
    unsigned short columns = 80;
    /// Stdin stays open for Write(); otherwise it is /dev/null.
    bool input = false;
    std::map<std::string, std::string> env;
    /// Appended to instead of kept (both streams); empty = kept.
    std::string log_path;
  };

  explicit Program(const std::vector<std::string>& argv) : Program(argv, Options()) {}

  Program(const std::vector<std::string>& argv, const Options& options);
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;
  ~Program();

  /// Reads stdout until `text` comes after what earlier calls matched.
  /// False when the deadline passed or the stream ended first.
  bool ReadUntil(std::string_view text, Duration deadline = kDeadline);
  /// Reads until `done` says so; same end conditions.
  bool ReadWhile(const std::function<bool()>& done, Duration deadline = kDeadline);
  /// Everything between the last match and the line's end, without it.
  std::optional<std::string> ReadLine(Duration deadline = kDeadline);

  /// Queued, and written while reading or waiting.
  void Write(std::string_view data);
  /// After what is queued.
  void CloseInput();
  /// Waits until all that is queued is with the program.
  bool Flush(Duration deadline = kDeadline);

  void Resize(unsigned short rows, unsigned short columns);
  void Kill(int signal) const;

  /// Ends when the program has ended and its streams are read to their end; a
  /// program that outlives the deadline is killed. Again: the same answer.
  int Wait(Duration deadline = kDeadline);
  Output Finish(Duration deadline = kDeadline);

  pid_t pid() const { return pid_; }

  const std::string& out() const { return out_; }

  const std::string& err() const { return err_; }

 private:
  bool Pump(const std::function<bool()>& done, Duration deadline);
  bool PumpOnce(Clock::time_point until);
  void ReadFrom(UniqueFd& fd, std::string& to);
  void WriteQueued();
  void Reap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd in_;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  bool close_input_ = false;
  std::string queued_;
  size_t written_ = 0;
  std::string out_;
  std::string err_;
  size_t matched_ = 0;
  std::optional<int> status_;
};

/// Runs to the end. `input` absent = /dev/null.
Output RunProgram(const std::vector<std::string>& argv, std::optional<std::string_view> input = {},
                  Duration deadline = kDeadline);

}  // namespace gantry::e2e
