// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/cgroup/v2.h"

#include <sys/stat.h>

#include <cerrno>
#include <ranges>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/notify.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::cgroup::v2 {
namespace {

constexpr size_t kMaxControlFile = 64 << 10;

// All at once; where one of them cannot be, each that can.
Status EnableControllers(const std::string& dir) {
  GANTRY_TRY(const std::string text, ReadFile(dir + "/cgroup.controllers", kMaxControlFile));
  std::vector<std::string> words;
  std::string all;
  for (const auto part : std::views::split(text, ' ')) {
    std::string word(std::string_view{part});
    std::erase(word, '\n');
    if (!word.empty()) {
      words.push_back("+" + word);
      all += (all.empty() ? "" : " ") + words.back();
    }
  }
  const std::string file = dir + "/cgroup.subtree_control";
  if (words.empty() || WriteExisting(file, all)) {
    return {};
  }
  for (const std::string& word : words) {
    IgnoreError(WriteExisting(file, word), "a limit that needs it will say so");
  }
  return {};
}

}  // namespace

Status Freeze(const std::string& dir, Deadline deadline) {
  GANTRY_CHECK_OK(WriteExisting(dir + "/cgroup.freeze", "1"));
  Status frozen = WaitForCgroupFile(dir + "/cgroup.events", deadline, [](std::string_view text) {
    return FieldIn(text, "frozen") == 1;
  });
  if (!frozen && frozen.error().code == Code::kDeadlineExceeded) {
    IgnoreError(WriteExisting(dir + "/cgroup.freeze", "0"),
                "the time-out is what the caller must know");
    return Fail(Code::kDeadlineExceeded, "freeze cgroup '{}': not all processes stopped in time",
                dir);
  }
  return frozen;
}

Status Thaw(const std::string& dir, Deadline deadline) {
  GANTRY_CHECK_OK(WriteExisting(dir + "/cgroup.freeze", "0"));
  return WaitForCgroupFile(dir + "/cgroup.events", deadline,
                           [](std::string_view text) { return FieldIn(text, "frozen") == 0; });
}

Result<bool> Frozen(const std::string& dir) {
  GANTRY_TRY(const std::string text, ReadFile(dir + "/cgroup.freeze", kMaxControlFile));
  return text.starts_with('1');
}

Status Kill(const std::string& dir, Deadline deadline) {
  const Status killed = WriteExisting(dir + "/cgroup.kill", "1");
  if (!killed) {
    // Absent before Linux 5.14, and refused in threaded cgroups.
    return KillBelow(dir, deadline, [&](bool freeze) {
      IgnoreError(WriteExisting(dir + "/cgroup.freeze", freeze ? "1" : "0"),
                  "the next round kills what this one missed");
    });
  }
  Status empty = WaitForCgroupFile(dir + "/cgroup.events", deadline, [](std::string_view text) {
    return FieldIn(text, "populated") == 0;
  });
  if (!empty && empty.error().code == Code::kDeadlineExceeded) {
    return Fail(Code::kDeadlineExceeded, "kill cgroup '{}': processes are still there", dir);
  }
  const bool gone = !empty && empty.error().code == Code::kNotFound;
  return gone ? Status() : empty;
}

Status Create(const MountedCgroup& cgroup) {
  size_t end = 0;
  std::string parent = cgroup.mount_dir;
  do {
    GANTRY_CHECK_OK(EnableControllers(parent));
    end = cgroup.path.find('/', end + 1);
    const std::string dir = cgroup.mount_dir + cgroup.path.substr(0, end);
    if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
      return FailErrno(errno, "create cgroup '{}'", dir);
    }
    parent = dir;
  } while (end != std::string::npos);
  return {};
}

}  // namespace gantry::cgroup::v2
