// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/move.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::cgroup {
namespace {

/// Beyond that it is no sandbox that waits.
constexpr size_t kMostProcesses = 4096;
constexpr size_t kMaxChildren = size_t{64} << 10;

/// Its children, of all its threads. Source: proc(5), /proc/PID/task/TID/children.
void AddChildren(int32_t pid, std::vector<int32_t>& found) {
  const std::string tasks = Format("/proc/{}/task", pid);
  for (const std::string& thread : ListDirectory(tasks).value_or(std::vector<std::string>())) {
    const std::string text =
        ReadFile(Format("{}/{}/children", tasks, thread), kMaxChildren).value_or("");
    const char* at = text.c_str();
    for (char* end = nullptr;; at = end) {
      const long child = std::strtol(at, &end, 10);
      if (end == at) {
        break;
      }
      found.push_back(static_cast<int32_t>(child));
    }
  }
}

class Mover {
 public:
  explicit Mover(const std::vector<std::string>& cgroups) : cgroups_(cgroups) {}

  Status Move(int32_t process) {
    GANTRY_CHECK_OK(Open());
    GANTRY_CHECK_OK(Enter(process));
    moved_.insert(process);
    // Who is started by one that has been moved is there already, so this comes to an end. The
    // kernel may leave a child out while another one ends, hence one look more.
    constexpr int kLooks = 2;
    for (int unchanged = 0; unchanged < kLooks && moved_.size() < kMostProcesses;) {
      GANTRY_TRY(const bool any, MoveChildren());
      unchanged = any ? 0 : unchanged + 1;
    }
    return {};
  }

 private:
  Status Open() {
    if (!Exists("/proc/thread-self/children")) {
      return Fail(Code::kFailedPrecondition,
                  "find what a process has started: this kernel does not tell "
                  "(CONFIG_PROC_CHILDREN)");
    }
    for (const std::string& dir : cgroups_) {
      const std::string path = dir + "/cgroup.procs";
      files_.emplace_back(open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!files_.back()) {
        return FailErrno(errno, "open '{}'", path);
      }
    }
    return {};
  }

  Status Enter(int32_t pid) const {
    const std::string number = std::to_string(pid);
    for (size_t i = 0; i < files_.size(); ++i) {
      if (write(files_[i].get(), number.data(), number.size()) < 0) {
        return errno == ESRCH
                   ? Status(Fail(Code::kNotFound, "move process {}: it has ended", pid))
                   : Status(FailErrno(errno, "move process {} into '{}'", pid, cgroups_[i]));
      }
    }
    return {};
  }

  /// Whether there were any.
  Result<bool> MoveChildren() {
    std::vector<int32_t> children;
    for (const int32_t parent : moved_) {
      AddChildren(parent, children);
    }
    bool any = false;
    for (const int32_t child : children) {
      if (!moved_.insert(child).second) {
        continue;
      }
      any = true;
      const Status entered = Enter(child);
      if (!entered && entered.error().code != Code::kNotFound) {
        return std::unexpected(entered.error());
      }
    }
    return any;
  }

  const std::vector<std::string>& cgroups_;
  std::vector<UniqueFd> files_;
  std::set<int32_t> moved_;
};

}  // namespace

Status MoveIntoCgroups(HostPid process, const std::vector<std::string>& cgroups) {
  return cgroups.empty() ? Status() : Mover(cgroups).Move(process.value);
}

}  // namespace gantry::cgroup
