// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/boot.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/host_limits.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/gofer.h"

namespace gantry::gvisor {
namespace {

constexpr mode_t kSocketMode = 0600;
constexpr const char* kBoot = "boot";
constexpr const char* kPanic = "panic";

/// Bound and not listening, which is the sentry's part. The way leads over the folder's
/// descriptor: a bundle's path may be longer than a socket's may be.
Result<UniqueFd> BindSocket(const std::string& path) {
  GANTRY_CHECK_OK(RemoveFile(path));
  const size_t slash = path.rfind('/');
  const UniqueFd folder(open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!folder || !socket) {
    return FailErrno(errno, "make the control socket '{}'", path);
  }
  const std::string way = Format("/proc/self/fd/{}{}", folder.get(), path.substr(slash));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (way.size() >= sizeof(address.sun_path)) {
    return Fail(Code::kInvalidArgument, "bind the control socket '{}': its name is too long", path);
  }
  std::memcpy(address.sun_path, way.c_str(), way.size() + 1);
  // The file gets the socket's own rights.
  if (fchmod(socket.get(), kSocketMode) != 0 ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno(errno, "bind the control socket '{}'", path);
  }
  return socket;
}

Result<UniqueFd> OpenNull() {
  UniqueFd fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '/dev/null'");
  }
  return fd;
}

Status AddPlatform(const Flags& flags, SpawnBuilder& child) {
  if (flags.platform != "kvm") {
    return {};
  }
  UniqueFd device(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!device) {
    return FailErrno(errno, "open '/dev/kvm' (runsc_config.platform)");
  }
  child.AddFd("device-fd", std::move(device));
  return {};
}

/// Its own log, which errors are read from, and those that are asked for.
Status AddLogs(const BootRequest& wanted, SpawnBuilder& child) {
  const LogFlags& logs = wanted.flags.logs;
  GANTRY_TRY(UniqueFd log, wanted.log.Duplicate());
  GANTRY_TRY(UniqueFd panics,
             OpenLogFile("runsc_config.panic-log", logs.panic, wanted.log_owner, kPanic));
  if (!panics) {
    GANTRY_TRY(panics, wanted.log.Duplicate());
  }
  child.AddFd("log-fd", std::move(log));
  child.AddFd("panic-log-fd", std::move(panics));
  GANTRY_CHECK_OK(AddDebugLog(logs, wanted.log_owner, kBoot, child));
  GANTRY_TRY(UniqueFd coverage,
             OpenLogFile("runsc_config.coverage-report", logs.coverage, wanted.log_owner, "cov"));
  if (coverage) {
    child.AddFd("coverage-fd", std::move(coverage));
  }
  return {};
}

/// A flag of the command, where the others are of all commands. Not in a folder that is not there:
/// it is the kubelet's to make.
Status AddUserLog(const BootRequest& wanted, SpawnBuilder& child) {
  const std::string& path = wanted.flags.logs.user;
  if (path.empty() || !Exists(path.substr(0, path.rfind('/')))) {
    return {};
  }
  GANTRY_TRY(UniqueFd user, OpenLogFile(kLogFolderAnnotation, path, wanted.log_owner, kBoot));
  if (user) {
    child.AddFd("user-log-fd", std::move(user));
  }
  return {};
}

void AddLimits(const BootRequest& wanted, SpawnBuilder& child) {
  const cgroup::HostLimits limits = cgroup::ReadHostLimits(wanted.place.cgroups);
  child.Add(Format("--total-host-memory={}", limits.host_memory_bytes));
  child.Add(Format("--total-memory={}", limits.memory_bytes));
  if (limits.cpus > 0) {
    child.Add(Format("--cpu-num={}", limits.cpus));
  }
}

void AddFiles(BootRequest& wanted, SpawnBuilder& child) {
  child.Add("--gofer-mount-confs=" + MountConfs(wanted.spec));
  for (UniqueFd& file : wanted.files) {
    child.AddFd("io-fds", std::move(file));
  }
  for (UniqueFd& file : wanted.filestores) {
    child.AddFd("gofer-filestore-fds", std::move(file));
  }
  if (wanted.mounts) {
    child.AddFd("mounts-fd", std::move(wanted.mounts));
  }
}

/// Gives the number of the first of them.
Result<int> AddStdio(BootRequest& wanted, SpawnBuilder& child) {
  int first = 0;
  for (UniqueFd& end : wanted.stdio) {
    if (!end) {
      GANTRY_TRY(end, OpenNull());
    }
    const int number = child.Pass(std::move(end));
    child.Add(Format("--stdio-fds={}", number));
    first = first == 0 ? number : first;
  }
  return first;
}

void Place(BootRequest& wanted, int terminal, SpawnRequest& request) {
  if (wanted.netns) {
    request.namespaces.emplace_back(std::move(wanted.netns), CLONE_NEWNET);
  }
  if (wanted.terminal) {
    request.controlling_terminal = terminal;
  }
  if (!wanted.environment.empty()) {
    request.env.push_back(std::move(wanted.environment));
  }
  request.cgroups = wanted.place.cgroups;
  request.tag = wanted.tag;
}

}  // namespace

Result<Boot> StartBoot(SandboxContext& context, BootRequest wanted) {
  Boot boot;
  SpawnBuilder child;
  child.Add(wanted.place.flags);
  GANTRY_CHECK_OK(AddLogs(wanted, child));
  if (const std::string& pattern = wanted.flags.logs.panic; !pattern.empty()) {
    boot.panic_log = LogFilePath(pattern, wanted.log_owner, kPanic);
  }
  child.Add(kBoot);
  child.Add("--bundle=" + wanted.place.bundle);
  GANTRY_CHECK_OK(AddUserLog(wanted, child));
  AddLimits(wanted, child);
  AddFiles(wanted, child);
  child.Add("--setup-root");
  child.Add("--apply-caps=true");
  GANTRY_CHECK_OK(AddPlatform(wanted.flags, child));
  GANTRY_TRY(auto pipe, MakeBlockingPipe());
  boot.started = std::move(pipe.first);
  child.AddFd("start-sync-fd", std::move(pipe.second));
  GANTRY_TRY(UniqueFd socket, BindSocket(wanted.socket));
  child.AddFd("controller-fd", std::move(socket));
  GANTRY_TRY(UniqueFd spec, SealedMemfd("spec", wanted.spec.json, MemfdUse::kRead));
  child.AddFd("spec-fd", std::move(spec));
  GANTRY_TRY(const int terminal, AddStdio(wanted, child));
  child.Add(wanted.id);
  GANTRY_TRY(SpawnRequest request, child.Finish("runsc-sandbox", wanted.program));
  GANTRY_CHECK_OK(Isolate(wanted.spec, !wanted.netns && !wanted.node_network, request));
  Place(wanted, terminal, request);
  GANTRY_TRY(boot.process, context.Spawn(std::move(request)));
  return boot;
}

Status AwaitBoot(const Boot& boot, const UniqueFd& log, Deadline deadline) {
  pollfd one = {boot.started.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&one, 1, PollTimeout(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return Fail(Code::kDeadlineExceeded, "boot the sentry: it is not ready in time: {}",
                LastWords(log));
  }
  char byte = 0;
  if (read(boot.started.get(), &byte, 1) == 1) {
    return {};
  }
  constexpr std::chrono::seconds kEndLimit{2};
  const auto end = boot.process->Wait(kEndLimit);
  std::string words = LastWords(log);
  if (words.empty() && !boot.panic_log.empty()) {
    words = Format("see '{}'", boot.panic_log);
  }
  return Fail(Code::kInternal, "boot the sentry: it ended with {}: {}",
              end ? std::to_string(end->code()) : "a status that is not known", words);
}

}  // namespace gantry::gvisor
