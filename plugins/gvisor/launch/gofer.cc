// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/gofer.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/net/netns.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/gofer_mounts.h"

namespace gantry::gvisor {
namespace {

constexpr size_t kMaxMounts = size_t{4} << 20;

/// What it has said so far; false: it has said all.
Result<bool> ReadSome(const UniqueFd& from, std::string& text) {
  std::array<char, 16384> buffer{};
  const ssize_t n = read(from.get(), buffer.data(), buffer.size());
  if (n < 0) {
    if (errno == EINTR) {
      return true;
    }
    return FailErrno(errno, "read the gofer's mounts");
  }
  text.append(buffer.data(), static_cast<size_t>(n));
  if (text.size() > kMaxMounts) {
    return Fail(Code::kResourceExhausted, "read the gofer's mounts: more than {} bytes",
                kMaxMounts);
  }
  return n > 0;
}

std::unexpected<Error> Ended(const Gofer& gofer, const GoferRequest& wanted) {
  return Fail(Code::kInternal, "start the gofer of '{}': it ended: {}", wanted.id,
              LastWords(gofer.log));
}

std::unexpected<Error> Late(const GoferRequest& wanted) {
  return Fail(Code::kDeadlineExceeded, "start the gofer of '{}': it has not told its mounts",
              wanted.id);
}

}  // namespace

std::string MountConfs(const Spec& spec) {
  std::string text;
  for (const FileMount& mount : spec.mounts) {
    text += (text.empty() ? "" : ",") + mount.conf.Text();
  }
  return text;
}

Result<Gofer> StartGofer(SandboxContext& context, const GoferRequest& wanted) {
  Gofer gofer;
  SpawnBuilder child;
  child.Add(wanted.place.flags);
  GANTRY_TRY(gofer.log, MakeBoundedLog(kMaxLogBytes));
  GANTRY_TRY(UniqueFd log, gofer.log.Duplicate());
  child.AddFd("log-fd", std::move(log));
  constexpr const char* kCommand = "gofer";
  GANTRY_CHECK_OK(AddDebugLog(wanted.logs, wanted.log_owner, kCommand, child));
  child.Add(kCommand);
  child.Add("--bundle=" + wanted.place.bundle);
  child.Add("--gofer-mount-confs=" + MountConfs(wanted.spec));
  GANTRY_TRY(UniqueFd spec, SealedMemfd("spec", wanted.spec.json, MemfdUse::kRead));
  child.AddFd("spec-fd", std::move(spec));
  GANTRY_TRY(auto pipe, MakeBlockingPipe());
  gofer.mounts = std::move(pipe.first);
  child.AddFd("mounts-fd", std::move(pipe.second));
  if (wanted.asks_for_mounts) {
    GANTRY_TRY(auto sockets, BlockingSocketPair(SOCK_STREAM));
    gofer.questions = std::move(sockets.first);
    child.AddFd("rpc-fd", std::move(sockets.second));
  }
  for (const FileMount& mount : wanted.spec.mounts) {
    if (mount.conf.lower == MountConf::Lower::kGofer) {
      GANTRY_TRY(auto sockets, BlockingSocketPair(SOCK_STREAM));
      gofer.connections.push_back(std::move(sockets.first));
      child.AddFd("io-fds", std::move(sockets.second));
    }
  }
  child.Add(wanted.id);
  GANTRY_TRY(SpawnRequest request, child.Finish("runsc-gofer", wanted.program));
  GANTRY_CHECK_OK(Isolate(wanted.spec, false, request));
  GANTRY_TRY(UniqueFd netns, net::EmptyNetns());
  // First, as long as nothing else has been joined: it is the host's to enter.
  request.namespaces.emplace(request.namespaces.begin(), std::move(netns), CLONE_NEWNET);
  request.cgroups = wanted.place.cgroups;
  request.tag = wanted.tag;
  GANTRY_TRY(gofer.process, context.Spawn(std::move(request)));
  return gofer;
}

Status AnswerQuestions(const Gofer& gofer, const GoferRequest& wanted, Deadline deadline) {
  if (!gofer.questions) {
    return {};
  }
  return ServeMounts(gofer.questions, gofer.process->pid(), wanted.spec, deadline);
}

Result<std::string> ReadMounts(const Gofer& gofer, const GoferRequest& wanted, Deadline deadline) {
  GANTRY_CHECK_OK(AnswerQuestions(gofer, wanted, deadline));
  std::string text;
  for (bool more = true; more;) {
    pollfd one = {gofer.mounts.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Late(wanted);
    }
    GANTRY_TRY(more, ReadSome(gofer.mounts, text));
  }
  if (text.empty()) {
    return Ended(gofer, wanted);
  }
  return text;
}

}  // namespace gantry::gvisor
