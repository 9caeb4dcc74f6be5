// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ranges>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/membership.h>
#include <gantry/toolkit/cgroup/tree.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/toolkit/cgroup/v1.h"
#include "core/toolkit/cgroup/v2.h"

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxProcFile = 1 << 20;
// The v1 trees in the order in which one is taken to say which processes there
// are: those that a runtime is surest to have put the container in.
constexpr auto kPrimary = std::to_array<std::string_view>(
    {"freezer", "pids", "memory", "devices", "cpu", "cpuacct", "blkio", "cpuset"});

Deadline After(Cgroup::Duration timeout) { return std::chrono::steady_clock::now() + timeout; }

Status CheckPath(std::string_view path) {
  const bool dots = std::ranges::any_of(std::views::split(path, '/'), [](auto part) {
    return std::string_view(part) == ".." || std::string_view(part) == ".";
  });
  if (!path.starts_with('/') || dots || path.contains('\n') || path.contains('\0')) {
    return Fail(Code::kInvalidArgument, "cgroup path '{}': must be absolute and without dots",
                path);
  }
  return {};
}

std::string Normal(std::string_view path) {
  std::string out;
  for (const auto part : std::views::split(path, '/')) {
    if (!part.empty()) {
      out.append("/").append(std::string_view(part));
    }
  }
  return out.empty() ? "/" : out;
}

std::unexpected<Error> OnlyRoots() {
  return Fail(Code::kFailedPrecondition, "use the cgroup: it is none but the root of its tree");
}

Status NotOurs(const std::string& dir) {
  const Result<std::vector<pid_t>> procs = ProcsBelow(dir);
  if (procs && std::ranges::binary_search(*procs, getpid())) {
    return Fail(Code::kFailedPrecondition, "stop cgroup '{}': the caller is in it", dir);
  }
  return {};
}

void AddMembership(const CgroupHierarchy& hierarchy, const Membership& membership,
                   Cgroup::Trees& v1, MountedCgroup& unified) {
  if (membership.unified() && hierarchy.mode() == CgroupMode::kV2) {
    const auto seen = PathBelow(hierarchy.unified().root, membership.path);
    unified = seen ? MountedCgroup{hierarchy.unified().mount_dir, *seen} : MountedCgroup();
  }
  for (const std::string& controller : membership.controllers) {
    const auto tree = hierarchy.v1().find(controller);
    const auto seen =
        tree == hierarchy.v1().end() ? std::nullopt : PathBelow(tree->second.root, membership.path);
    if (seen) {
      v1[controller] = MountedCgroup{tree->second.mount_dir, *seen};
    }
  }
}

}  // namespace

Cgroup::Cgroup(Trees v1, MountedCgroup unified)
    : v1_(v1.empty() ? nullptr : std::make_shared<const Trees>(std::move(v1))),
      unified_(std::move(unified)) {}

const Cgroup::Trees& Cgroup::v1() const {
  static const Trees none;
  return v1_ ? *v1_ : none;
}

Result<Cgroup> Cgroup::OfProcess(const CgroupHierarchy& hierarchy, ProcessId process) {
  const std::string file = Format("{}/{}/cgroup", hierarchy.proc_dir(), process.pid);
  GANTRY_TRY(const std::string text, ReadFile(file, kMaxProcFile));
  if (process.start_time != 0) {
    // Its number was its own until here, so it was when the file was read.
    GANTRY_TRY([[maybe_unused]] const UniqueFd still, OpenPidfd(process));
  }
  Trees v1;
  MountedCgroup unified;
  for (const Membership& membership : ParseMemberships(text)) {
    AddMembership(hierarchy, membership, v1, unified);
  }
  Cgroup out(std::move(v1), std::move(unified));
  if (out.empty()) {
    return Fail(Code::kNotFound, "find the cgroups of process {}: none can be seen", process.pid);
  }
  return out;
}

Result<Cgroup> Cgroup::Named(const CgroupHierarchy& hierarchy, const std::string& path) {
  GANTRY_CHECK_OK(CheckPath(path));
  MountedCgroup unified;
  if (hierarchy.mode() == CgroupMode::kV2) {
    unified = MountedCgroup{hierarchy.unified().mount_dir, Normal(path)};
  }
  Trees v1;
  for (const auto& [controller, tree] : hierarchy.v1()) {
    v1[controller] = MountedCgroup{tree.mount_dir, Normal(path)};
  }
  return Cgroup(std::move(v1), std::move(unified));
}

Result<Cgroup> Cgroup::Create(const CgroupHierarchy& hierarchy, const std::string& path) {
  GANTRY_TRY(Cgroup out, Named(hierarchy, path));
  if (Normal(path) == "/") {
    return OnlyRoots();
  }
  if (out.empty()) {
    return Fail(Code::kNotFound, "create cgroup '{}': the node has no cgroup hierarchy mounted",
                path);
  }
  if (out.is_unified()) {
    GANTRY_CHECK_OK(v2::Create(out.unified_));
  }
  for (const auto& [controller, dir] : out.v1()) {
    GANTRY_CHECK_OK(v1::Create(dir, controller == "cpuset"));
  }
  return out;
}

std::string Cgroup::DirOf(std::string_view controller) const {
  if (is_unified()) {
    return unified_.dir();
  }
  const auto found = v1().find(std::string(controller));
  return found == v1().end() ? std::string() : found->second.dir();
}

// The directory that says which processes there are.
Result<std::string> Cgroup::Primary() const {
  if (is_unified()) {
    if (unified_.mount_dir.empty() || unified_.is_root()) {
      return OnlyRoots();
    }
    return unified_.dir();
  }
  for (const std::string_view controller : kPrimary) {
    const auto found = v1().find(std::string(controller));
    if (found != v1().end() && !found->second.is_root()) {
      return found->second.dir();
    }
  }
  return OnlyRoots();
}

std::vector<std::string> Cgroup::Dirs() const {
  std::vector<std::string> dirs;
  for (const auto& [controller, dir] : v1()) {
    if (!dir.is_root()) {
      dirs.push_back(dir.dir());
    }
  }
  if (!unified_.mount_dir.empty() && !unified_.is_root()) {
    dirs.push_back(unified_.dir());
  }
  return dirs;
}

bool Cgroup::Exists() const {
  if (is_unified()) {
    return !unified_.mount_dir.empty() && !unified_.is_root() && gantry::Exists(unified_.dir());
  }
  return std::ranges::any_of(v1(), [](const auto& entry) {
    return !entry.second.is_root() && gantry::Exists(entry.second.dir());
  });
}

Result<std::vector<pid_t>> Cgroup::Procs() const {
  GANTRY_TRY(const std::string dir, Primary());
  return ProcsBelow(dir);
}

Status Cgroup::AddProcess(pid_t pid) const {
  const std::string text = std::to_string(pid);
  if (is_unified()) {
    return WriteExisting(unified_.dir() + "/cgroup.procs", text);
  }
  for (const auto& [controller, dir] : v1()) {
    GANTRY_CHECK_OK(WriteExisting(dir.dir() + "/cgroup.procs", text));
  }
  return {};
}

Result<UniqueFd> Cgroup::OpenUnified() const {
  if (!is_unified()) {
    return Fail(Code::kUnimplemented, "open the cgroup: the node has cgroup v1");
  }
  UniqueFd fd(open(unified_.dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open cgroup '{}'", unified_.dir());
  }
  return fd;
}

Status Cgroup::Freeze(Duration timeout) const {
  GANTRY_TRY(const std::string dir, Primary());
  GANTRY_CHECK_OK(NotOurs(dir));
  if (is_unified()) {
    return v2::Freeze(dir, After(timeout));
  }
  const auto freezer = v1().find("freezer");
  if (freezer == v1().end() || freezer->second.is_root()) {
    return Fail(Code::kUnimplemented, "freeze cgroup '{}': it has no freezer", dir);
  }
  return v1::Freeze(freezer->second.dir(), After(timeout));
}

Status Cgroup::Thaw(Duration timeout) const {
  GANTRY_TRY(const std::string dir, Primary());
  if (is_unified()) {
    return v2::Thaw(dir, After(timeout));
  }
  const auto freezer = v1().find("freezer");
  if (freezer == v1().end() || freezer->second.is_root()) {
    return Fail(Code::kUnimplemented, "thaw cgroup '{}': it has no freezer", dir);
  }
  return v1::Thaw(freezer->second.dir(), After(timeout));
}

Result<bool> Cgroup::Frozen() const {
  GANTRY_TRY(const std::string dir, Primary());
  if (is_unified()) {
    return v2::Frozen(dir);
  }
  const auto freezer = v1().find("freezer");
  if (freezer == v1().end() || freezer->second.is_root()) {
    return false;
  }
  return v1::Frozen(freezer->second.dir());
}

Status Cgroup::Signal(int signal) const {
  GANTRY_TRY(const std::string dir, Primary());
  GANTRY_CHECK_OK(NotOurs(dir));
  auto signalled = SignalBelow(dir, signal);
  if (!signalled && signalled.error().code != Code::kNotFound) {
    return std::unexpected(std::move(signalled).error());
  }
  return {};
}

Status Cgroup::Kill(Duration timeout) const {
  GANTRY_TRY(const std::string dir, Primary());
  GANTRY_CHECK_OK(NotOurs(dir));
  if (is_unified()) {
    return v2::Kill(dir, After(timeout));
  }
  const auto found = v1().find("freezer");
  const bool freezable = found != v1().end() && !found->second.is_root();
  const std::string freezer = freezable ? found->second.dir() : std::string();
  return KillBelow(dir, After(timeout), [&](bool freeze) {
    if (freezable && freeze) {
      IgnoreError(WriteExisting(freezer + "/freezer.state", "FROZEN"),
                  "the next round kills what this one missed");
    } else if (freezable) {
      ThawBelow(freezer);
    }
  });
}

void Cgroup::ThawToDie() const {
  const auto freezer = v1().find("freezer");
  if (!is_unified() && freezer != v1().end() && !freezer->second.is_root()) {
    ThawBelow(freezer->second.dir());
  }
}

Status Cgroup::Remove(Duration timeout) const {
  const Deadline deadline = After(timeout);
  if (is_unified()) {
    if (unified_.mount_dir.empty() || unified_.is_root()) {
      return OnlyRoots();
    }
    return RemoveBelow(unified_.dir(), deadline);
  }
  Status first;
  for (const auto& [controller, dir] : v1()) {
    Status removed = dir.is_root() ? Status() : RemoveBelow(dir.dir(), deadline);
    if (first && !removed) {
      first = std::move(removed);
    }
  }
  return first;
}

Status Cgroup::RemoveIfEmpty() const {
  Status first;
  for (const std::string& dir : Dirs()) {
    if (rmdir(dir.c_str()) != 0 && errno != EBUSY && errno != ENOTEMPTY && errno != ENOENT &&
        first) {
      first = FailErrno(errno, "remove cgroup '{}'", dir);
    }
  }
  return first;
}

Status Cgroup::Update(const CgroupResources& resources) const {
  if (is_unified()) {
    if (unified_.mount_dir.empty() || unified_.is_root()) {
      return OnlyRoots();
    }
    return v2::Update(unified_.dir(), resources);
  }
  Trees own = v1();
  std::erase_if(own, [](const auto& entry) { return entry.second.is_root(); });
  return own.empty() ? OnlyRoots() : v1::Update(own, resources);
}

// A line per cgroup: controller (none: v2), mount directory and path, with tabs
// between. The path is the last because it may hold anything but a newline.
std::string Cgroup::Encode() const {
  std::string text;
  const auto add = [&](std::string_view controller, const MountedCgroup& dir) {
    text.append(controller).append("\t").append(dir.mount_dir).append("\t").append(dir.path);
    text.append("\n");
  };
  if (!unified_.mount_dir.empty()) {
    add("", unified_);
  }
  for (const auto& [controller, dir] : v1()) {
    add(controller, dir);
  }
  return text;
}

Result<Cgroup> Cgroup::Decode(std::string_view text) {
  Trees v1;
  MountedCgroup unified;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part);
    if (line.empty()) {
      continue;
    }
    const size_t first = line.find('\t');
    const size_t second = first == line.npos ? line.npos : line.find('\t', first + 1);
    if (second == line.npos || line[first + 1] != '/') {
      return Fail(Code::kInvalidArgument, "decode a cgroup: malformed line '{}'", line);
    }
    MountedCgroup dir{std::string(line.substr(first + 1, second - first - 1)),
                      std::string(line.substr(second + 1))};
    GANTRY_CHECK_OK(CheckPath(dir.path));
    (first == 0 ? unified : v1[std::string(line.substr(0, first))]) = std::move(dir);
  }
  return Cgroup(std::move(v1), std::move(unified));
}

}  // namespace gantry::cgroup
