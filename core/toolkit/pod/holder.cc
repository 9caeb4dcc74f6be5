// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pod/holder.h>
#include <gantry/toolkit/pod/sysctl.h>

namespace gantry {
namespace {

constexpr const char* kTag = "pause";
/// The number at which it finds its end of the conversation.
constexpr int kEngineFd = 3;

Result<UniqueFd> OpenNamespace(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    return FailErrno(errno, "open the pod's network namespace '{}'", path);
  }
  if (ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return Fail(Code::kInvalidArgument, "open the pod's network namespace '{}': it is none", path);
  }
  return fd;
}

Status JoinNamespaces(const HolderRequest& holder_request, SpawnRequest& request) {
  if (holder_request.netns_path.empty()) {
    return {};
  }
  GANTRY_TRY(UniqueFd net, OpenNamespace(holder_request.netns_path));
  if (holder_request.user) {
    // CRI makes the network namespace inside the pod's user namespace.
    UniqueFd user(ioctl(net.get(), NS_GET_USERNS));
    if (!user) {
      return FailErrno(errno, "find the user namespace of '{}'", holder_request.netns_path);
    }
    request.namespaces.emplace_back(std::move(user), CLONE_NEWUSER);
    request.uid = 0;
    request.gid = 0;
  }
  request.namespaces.emplace_back(std::move(net), CLONE_NEWNET);
  return {};
}

SpawnRequest RequestOf(const HolderRequest& holder_request) {
  SpawnRequest request;
  request.argv = {holder_request.program};
  if (holder_request.ipc) {
    request.argv.emplace_back("-i");
  }
  if (holder_request.uts) {
    request.argv.insert(request.argv.end(), {"-u", "-h", holder_request.hostname});
  }
  if (holder_request.pid) {
    request.argv.emplace_back("-p");
  }
  for (const auto& [path, value] : holder_request.sysctls) {
    request.argv.insert(request.argv.end(), {"-s", Format("{}={}", path, value)});
  }
  request.cgroups = holder_request.cgroups;
  request.tag = kTag;
  return request;
}

/// One line. Errors: kDeadlineExceeded; kUnavailable when it ended without one.
Result<std::string> ReadLine(const UniqueFd& from, Deadline deadline) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd look = {from.get(), POLLIN, 0};
    const int ready = poll(&look, 1, PollTimeout(deadline));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      return Fail(Code::kDeadlineExceeded, "start the pod's holder: it says nothing");
    }
    char c = 0;
    if (read(from.get(), &c, 1) != 1 || line.size() > 200) {
      return Fail(Code::kUnavailable, "start the pod's holder: it ended");
    }
    line += c;
  }
  line.pop_back();
  return line;
}

/// `PID`, or `!STEP ERRNO`.
Result<HostPid> ReadPid(const UniqueFd& from, Deadline deadline) {
  GANTRY_TRY(const std::string line, ReadLine(from, deadline));
  if (!line.starts_with('!')) {
    GANTRY_TRY(const int64_t pid, ParseNumber(line));
    return HostPid{static_cast<int32_t>(pid)};
  }
  const size_t space = line.rfind(' ');
  const auto number = ParseNumber(std::string_view(line).substr(space + 1));
  return FailErrno(number ? static_cast<int>(*number) : EIO, "start the pod's holder: {}",
                   line.substr(1, space - 1));
}

}  // namespace

Result<HolderRequest> HolderRequestOf(const SandboxRequest& request, const PodConfig& config) {
  HolderRequest holder_request;
  const bool own_network = config.network != NamespaceMode::kNode;
  if (own_network && request.netns_path.empty()) {
    return Fail(Code::kInvalidArgument,
                "create sandbox '{}': the pod has a network of its own and no network namespace "
                "came with it",
                request.id.str());
  }
  holder_request.netns_path = own_network ? request.netns_path : "";
  holder_request.ipc = config.ipc != NamespaceMode::kNode;
  // As in Kubernetes: a pod on the node's network has the node's name.
  holder_request.uts = own_network;
  holder_request.pid = config.pid == NamespaceMode::kPod;
  holder_request.user = config.user == NamespaceMode::kPod;
  if (holder_request.user && !own_network) {
    return Fail(Code::kInvalidArgument,
                "create sandbox '{}': a user namespace of its own and the node's network do not "
                "go together",
                request.id.str());
  }
  holder_request.hostname = config.hostname;
  holder_request.cgroups = request.cgroups;
  const OwnNamespaces own = {
      .net = own_network, .ipc = holder_request.ipc, .uts = holder_request.uts};
  for (const auto& [name, value] : config.sysctls) {
    GANTRY_TRY(std::string path, SysctlPath(name, own));
    holder_request.sysctls[std::move(path)] = value;
  }
  if (holder_request.uts && holder_request.hostname.empty()) {
    std::array<char, 65> name = {};
    if (gethostname(name.data(), name.size() - 1) == 0) {
      holder_request.hostname = name.data();
    }
  }
  return holder_request;
}

Result<std::string> FindHolder() {
  Dl_info self = {};
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&FindHolder), &self) != 0 && self.dli_fname != nullptr) {
    folder = self.dli_fname;
    folder.resize(std::max<size_t>(folder.rfind('/'), 0));
  }
  for (const std::string& place : {folder + "/../gantry-pause", folder + "/gantry-pause"}) {
    if (IsExecutable(place)) {
      return place;
    }
  }
  return Fail(Code::kFailedPrecondition,
              "find gantry-pause, which holds the namespaces of pods: not beside '{}'; install it "
              "again",
              folder);
}

Result<std::shared_ptr<HostProcess>> StartHolder(
    SandboxContext& context, const HolderRequest& holder_request, Deadline deadline,
    const std::function<Status(const std::shared_ptr<HostProcess>&)>& taken) {
  SpawnRequest request = RequestOf(holder_request);
  GANTRY_CHECK_OK(JoinNamespaces(holder_request, request));
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_STREAM));
  request.fds.emplace_back(std::move(ends.second), kEngineFd);
  GANTRY_TRY(std::shared_ptr<HostProcess> holder, context.Spawn(std::move(request)));
  GANTRY_TRY(const HostPid pid, ReadPid(ends.first, deadline));
  if (pid != holder->pid()) {
    // It is the first process of a pid namespace, and the keeper's before long.
    GANTRY_TRY(holder, context.Adopt(pid));
  }
  GANTRY_CHECK_OK(taken(holder));
  // From here on it stays.
  if (write(ends.first.get(), "g", 1) != 1) {
    return FailErrno(errno, "start the pod's holder");
  }
  return holder;
}

void EndUnsavedHolder(SandboxContext& context, std::chrono::milliseconds limit) {
  if (const auto holder = context.FindSpawned(kTag)) {
    IgnoreError(holder->Signal(SIGKILL), "it has ended with the engine that it talked to");
    if (const auto ended = holder->Wait(limit); !ended) {
      context.Log(LogLevel::kWarning, ended.error().message);
    }
  }
}

Status StopHolder(HostProcess& holder, std::chrono::milliseconds limit) {
  IgnoreError(holder.Signal(SIGTERM), "it has ended");
  if (holder.Wait(limit / 2)) {
    return {};
  }
  IgnoreError(holder.Signal(SIGKILL), "it has ended");
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, holder.Wait(limit - limit / 2));
  return {};
}

}  // namespace gantry
