// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gvisor/fakes.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
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

std::string FakeRunsc::WriteTo(const std::string& directory) const {
  std::string boot_flags =
      "--bundle --gofer-mount-confs --io-fds --mounts-fd --start-sync-fd --controller-fd "
      "--spec-fd --stdio-fds";
  constexpr const char* kGofer = "--bundle --gofer-mount-confs --spec-fd --mounts-fd --io-fds";
  constexpr const char* kGlobal = "--network --platform --root";
  if (!lacks.empty()) {
    boot_flags.replace(boot_flags.find(lacks), lacks.size(), "");
  }
  const std::string path = directory + "/runsc";
  std::ofstream(path) << Format(R"SH(#!/bin/sh
all="$*"
fd() {{ for one in $all; do case $one in --$1=*) echo "${{one#*=}}";; esac; done; }}
say() {{ echo "$2" >>/proc/self/fd/$(fd "$1"); }}
case " $all " in
*" --version "*) echo "runsc version {}";;
*" help boot "*) echo "{}";;
*" help gofer "*) echo "{}";;
*" flags "*) echo "{}" >&2;;
*" boot "*) {};;
*" gofer "*) {};;
esac
)SH",
                                version, lists_flags ? boot_flags : "", lists_flags ? kGofer : "",
                                lists_flags ? kGlobal : "", boot, gofer);
  constexpr mode_t kMode = 0755;
  chmod(path.c_str(), kMode);
  return path;
}

void FakeRunsc::WriteAsSidecar(const std::string& directory) const {
  const std::string folder = directory + "/gvisor-bin";
  std::filesystem::create_directory(folder);
  std::filesystem::rename(WriteTo(folder), folder + "/gvisor_sentry");
}

std::optional<std::string> RealRunsc(const std::string& release) {
  // Nothing in the tests changes the environment.
  const char* const cache = std::getenv("GANTRY_CACHE");
  const char* const home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : std::string(home != nullptr ? home : "/root") + "/.cache/gantry";
  const std::string path = Format("{}/runsc/{}/bin/runsc", folder, release);
  return IsExecutable(path) ? std::optional(path) : std::nullopt;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  auto names = ListDirectory(directory).value_or(std::vector<std::string>());
  std::ranges::sort(names);
  return names;
}

}  // namespace gantry::gvisor
