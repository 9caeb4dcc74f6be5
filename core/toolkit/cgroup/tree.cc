// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <ranges>
#include <span>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/notify.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/toolkit/process/backoff.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxProcs = 64 << 20;
// Pidfds held at once; a container with more processes is signalled in batches.
constexpr size_t kBatch = 64;
// How long the killed may take before they are looked at again: one of them may
// be in a system call that cannot be interrupted while others are long gone.
constexpr std::chrono::milliseconds kRound{500};

// What may be gone while it is looked at.
bool IsGone(const Error& error) {
  return error.code == Code::kNotFound || error.sys_errno == ENODEV;
}

/// Where descriptors are few, to those that can be opened.
Status SignalBatch(int dir, int signal, std::span<const pid_t> pids,
                   std::vector<Signalled>& signalled) {
  Status first;
  std::vector<UniqueFd> opened;
  for (const pid_t pid : pids) {
    opened.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!opened.back() && errno != ESRCH) {
      first = FailErrno(errno, "open process {}", pid);
      // What the list needs comes from the last ones: a file is opened twice.
      opened.resize(std::max(opened.size(), size_t{3}) - 3);
      break;
    }
  }
  // Its number may have been another's between the list and the open.
  GANTRY_TRY(const std::vector<pid_t> still, ProcsAt(dir));
  for (size_t i = 0; i < opened.size(); ++i) {
    if (!opened[i] || !std::ranges::contains(still, pids[i]) || HasEnded(opened[i].get())) {
      continue;
    }
    if (syscall(SYS_pidfd_send_signal, opened[i].get(), signal, nullptr, 0) != 0 &&
        errno != ESRCH && first) {
      first = FailErrno(errno, "signal process {}", pids[i]);
    }
    if (signalled.size() < kMaxSignalled) {
      signalled.push_back({pids[i], std::move(opened[i])});
    }
  }
  return first;
}

// Until all have ended, or the deadline.
void WaitForEnds(std::vector<Signalled> killed, Deadline deadline) {
  while (!killed.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd last{.fd = killed.back().pidfd.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&last, 1, static_cast<int>(left.count())) == 0) {
      return;
    }
    if (last.revents != 0) {
      killed.pop_back();
    }
  }
}

}  // namespace

std::vector<std::string> SubDirs(const std::string& dir) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(dir.c_str()), closedir);
  if (!open) {
    return names;
  }
  while (const dirent* entry = readdir(open.get())) {
    const std::string_view name(entry->d_name);
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

Result<std::vector<pid_t>> ProcsAt(int dir) {
  std::vector<pid_t> procs;
  const Result<std::string> text = ReadFileAt(dir, "cgroup.procs", kMaxProcs);
  if (!text) {
    const bool threaded = text.error().sys_errno == EOPNOTSUPP;
    return threaded ? Result<std::vector<pid_t>>(procs) : std::unexpected(text.error());
  }
  for (const auto part : std::views::split(*text, '\n')) {
    pid_t pid = 0;
    std::from_chars(part.data(), part.data() + part.size(), pid);
    if (pid > 0) {
      procs.push_back(pid);
    }
  }
  return procs;
}

Result<std::vector<pid_t>> ProcsBelow(const std::string& dir) {
  std::vector<pid_t> procs;
  bool is_root = true;
  const auto add = [&](int below) -> Status {
    const auto found = ProcsAt(below);
    const bool ignored = !is_root && !found && IsGone(found.error());
    is_root = false;
    if (!found) {
      return ignored ? Status() : std::unexpected(found.error());
    }
    procs.insert(procs.end(), found->begin(), found->end());
    return {};
  };
  GANTRY_CHECK_OK(WalkTree(dir, {.enter = add, .leave = {}}));
  std::ranges::sort(procs);
  const auto repeated = std::ranges::unique(procs);
  procs.erase(repeated.begin(), repeated.end());
  return procs;
}

Status SignalAt(int dir, int signal, std::vector<Signalled>& signalled) {
  GANTRY_TRY(std::vector<pid_t> procs, ProcsAt(dir));
  std::erase_if(procs, [self = getpid()](pid_t pid) { return pid <= 1 || pid == self; });
  for (size_t done = 0; done < procs.size(); done += kBatch) {
    const std::span<const pid_t> rest = std::span(procs).subspan(done);
    GANTRY_CHECK_OK(SignalBatch(dir, signal, rest.first(std::min(kBatch, rest.size())), signalled));
  }
  return {};
}

Result<std::vector<Signalled>> SignalBelow(const std::string& dir, int signal) {
  std::vector<Signalled> signalled;
  bool is_root = true;
  const auto send = [&](int below) -> Status {
    Status sent = SignalAt(below, signal, signalled);
    const bool ignored = !is_root && !sent && IsGone(sent.error());
    is_root = false;
    return ignored ? Status() : sent;
  };
  GANTRY_CHECK_OK(WalkTree(dir, {.enter = send, .leave = {}}));
  return signalled;
}

Status KillBelow(const std::string& dir, Deadline deadline,
                 const std::function<void(bool)>& set_frozen) {
  Backoff backoff({.no_event = "a cgroup of v1, and one before cgroup.kill, gains processes unseen",
                   .first = std::chrono::microseconds(100),
                   .longest = std::chrono::milliseconds(10)});
  for (int round = 0;; ++round) {
    const Result<std::vector<pid_t>> left = ProcsBelow(dir);
    const bool gone = !left && IsGone(left.error());
    if (gone || (left && left->empty())) {
      return {};
    }
    if (round > 0) {
      set_frozen(true);
    }
    auto signalled = SignalBelow(dir, SIGKILL);
    set_frozen(false);
    if (signalled && !signalled->empty()) {
      WaitForEnds(*std::move(signalled),
                  std::min(deadline, std::chrono::steady_clock::now() + kRound));
    }
    if (!backoff.Sleep(deadline)) {
      return Fail(Code::kDeadlineExceeded, "kill cgroup '{}': {} processes are still there", dir,
                  left ? left->size() : 0);
    }
  }
}

void ThawBelow(const std::string& freezer) {
  const auto thaw = [](int dir) -> Status {
    IgnoreError(WriteExistingAt(dir, "freezer.state", "THAWED"), "it may just have gone");
    return {};
  };
  IgnoreError(WalkTree(freezer, {.enter = thaw, .leave = {}}), "it may just have gone");
}

Status RemoveOnce(const std::string& dir) {
  if (rmdir(dir.c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  Status first;
  const auto remove = [&](int parent, const std::string& name) -> Status {
    // The others go all the same.
    if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && first) {
      first = FailErrno(errno, "remove '{}' of cgroup '{}'", name, dir);
    }
    return {};
  };
  Status removed = WalkTree(dir, {.enter = {}, .leave = remove});
  if (removed) {
    removed = std::move(first);
  }
  return !removed && removed.error().code == Code::kNotFound ? Status() : removed;
}

Status RemoveBelow(const std::string& dir, Deadline deadline) {
  Backoff backoff({.no_event = "rmdir of a cgroup: v1 has no event for empty, and v2 tells of it "
                               "a moment before the kernel has let go",
                   .first = std::chrono::microseconds(100),
                   .longest = std::chrono::milliseconds(10)});
  for (;;) {
    Status removed = RemoveOnce(dir);
    if (removed || removed.error().sys_errno != EBUSY) {
      return removed;
    }
    // Absent in v1.
    IgnoreError(
        WaitForCgroupFile(dir + "/cgroup.events", deadline,
                          [](std::string_view text) { return FieldIn(text, "populated") != 1; }),
        "the next removal says what is there");
    if (!backoff.Sleep(deadline)) {
      return Fail(Code::kFailedPrecondition, "remove cgroup '{}': processes are still in it", dir);
    }
  }
}

}  // namespace gantry::cgroup
