// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/fakes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry {
namespace {

/// A descriptor of a script is closed when its interpreter wants to open it.
std::string ScriptBehind(const UniqueFd& program) {
  const std::string link = Format("/proc/self/fd/{}", program.get());
  const auto text = ReadFile(link, size_t{256} << 20);
  std::error_code failed;
  const std::string path = std::filesystem::read_symlink(link, failed);
  return text && text->starts_with("#!") ? path : std::string();
}

os::SpawnRequest ToRequest(const SpawnRequest& from) {
  os::SpawnRequest to;
  to.argv = from.argv;
  to.env = from.env;
  to.cwd = from.cwd.empty() ? "/" : from.cwd;
  to.new_session = from.new_session;
  to.new_namespaces = from.new_namespaces;
  to.uid_map = from.uid_map;
  to.gid_map = from.gid_map;
  to.uid = from.uid;
  to.gid = from.gid;
  for (const auto& [fd, number] : from.fds) {
    to.descriptors.push_back({fd.get(), number});
  }
  for (const auto& [fd, type] : from.namespaces) {
    to.namespaces.push_back({fd.get(), type});
  }
  for (const auto& [resource, limit] : from.rlimits) {
    to.limits.push_back({resource, limit});
  }
  if (from.program) {
    to.executable = ScriptBehind(from.program);
    if (to.executable.empty()) {
      to.program_fd = from.program.get();
    }
  }
  return to;
}

}  // namespace

FakeHostProcess::FakeHostProcess(os::SpawnResult spawned)
    : process_(spawned.process), pidfd_(std::move(spawned.pidfd)) {}

FakeHostProcess::~FakeHostProcess() {
  if (!Ended()) {
    kill(process_.pid, SIGKILL);
    constexpr std::chrono::seconds kLimit{10};
    IgnoreError(Wait(kLimit), "the test ends anyhow");
  }
}

Status FakeHostProcess::Signal(int signal) {
  if (Ended() || kill(process_.pid, signal) != 0) {
    return Fail(Code::kNotFound, "process already finished");
  }
  return {};
}

std::optional<WaitStatus> FakeHostProcess::Ended() const {
  const std::lock_guard lock(mutex_);
  int raw = 0;
  if (!ended_ && waitpid(process_.pid, &raw, WNOHANG) == process_.pid) {
    ended_ = WaitStatus{raw, 1};
  }
  return ended_;
}

Result<WaitStatus> FakeHostProcess::Wait(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  pollfd one = {pidfd_.get(), POLLIN, 0};
  while (!Ended()) {
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "wait for {}", process_.pid);
    }
  }
  return *Ended();
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Spawn(SpawnRequest request) {
  GANTRY_TRY(os::SpawnResult started, os::SpawnProcess(ToRequest(request)));
  auto process = std::make_shared<FakeHostProcess>(std::move(started));
  const std::lock_guard lock(mutex_);
  tags.push_back(request.tag);
  spawned.push_back(process);
  return process;
}

std::shared_ptr<HostProcess> FakeSandboxContext::FindSpawned(std::string_view tag) {
  const auto found = left.find(tag);
  if (found == left.end()) {
    return nullptr;
  }
  auto process = std::move(found->second);
  left.erase(found);
  return process;
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Adopt(HostPid pid) {
  return Fail(Code::kNotFound, "adopt {}: not in this fake", pid.value);
}

Result<std::shared_ptr<HostProcess>> FakeSandboxContext::Recover(HostPid pid, uint64_t) {
  return Fail(Code::kNotFound, "recover {}: not in this fake", pid.value);
}

Result<std::unique_ptr<Watch>> FakeSandboxContext::WatchReadable(int, std::function<void()>) {
  return Fail(Code::kUnimplemented, "watch: not in this fake");
}

Status FakeSandboxContext::Store(std::string_view name, const UniqueFd& fd) {
  GANTRY_TRY(stored[std::string(name)], fd.Duplicate());
  return {};
}

Result<UniqueFd> FakeSandboxContext::Take(std::string_view name) {
  const auto found = stored.find(name);
  if (found == stored.end()) {
    return Fail(Code::kNotFound, "take '{}': not stored", name);
  }
  return found->second.Duplicate();
}

void FakeSandboxContext::Drop(std::string_view name) {
  if (const auto found = stored.find(name); found != stored.end()) {
    stored.erase(found);
  }
}

size_t FakeSandboxContext::Alive() const {
  return static_cast<size_t>(
      std::ranges::count_if(spawned, [](const auto& process) { return !process->Ended(); }));
}

std::vector<std::string> NamesIn(const std::string& directory) {
  auto names = ListDirectory(directory).value_or(std::vector<std::string>());
  std::ranges::sort(names);
  return names;
}

}  // namespace gantry
