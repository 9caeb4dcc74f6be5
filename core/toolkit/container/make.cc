// SPDX-License-Identifier: Apache-2.0
//
// The maker's side: it checks and prepares, makes the first child, and does for both children what
// they have no right to, until they say that the container is made.
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/container/make.h>

#include "core/toolkit/container/channel.h"
#include "core/toolkit/container/child.h"
#include "core/toolkit/container/limits.h"
#include "core/toolkit/container/make_with.h"
#include "core/toolkit/container/names.h"
#include "core/toolkit/container/proc_files.h"
#include "core/toolkit/container/seccomp_agent.h"

namespace gantry::container {
namespace {

void Signal(const UniqueFd& pidfd, int signal) {
  if (pidfd) {
    ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
  }
}

// How it ended, in words; nothing where others collect it.
std::string Collect(pid_t pid) {
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid, &status, 0);
  } while (got < 0 && errno == EINTR);
  if (got != pid) {
    return "";
  }
  return WIFSIGNALED(status) ? Format(" by signal {}", WTERMSIG(status))
                             : Format(" with status {}", WEXITSTATUS(status));
}

Status CheckRequest(const MakeRequest& request, const Namespaces& namespaces, bool has_root) {
  if (std::ranges::any_of(request.passed_on, [](int fd) { return fd <= STDERR_FILENO; })) {
    return Fail(Code::kInvalidArgument,
                "make a container: a descriptor to be passed on is a standard stream or none");
  }
  if (has_root && (namespaces.fresh & CLONE_NEWNS) == 0) {
    return Fail(Code::kInvalidArgument,
                "make a container: it has a root and no new mount namespace to make it in");
  }
  const oci::LinuxSpec& part = request.spec.linux_spec;
  const bool new_user = (namespaces.fresh & CLONE_NEWUSER) != 0;
  if (new_user && (part.uid_mappings.empty() || part.gid_mappings.empty())) {
    return Fail(Code::kInvalidArgument,
                "make a container: a new user namespace without uidMappings or gidMappings");
  }
  if (!part.time_offsets.empty() && (namespaces.fresh & CLONE_NEWTIME) == 0) {
    return Fail(Code::kInvalidArgument,
                "make a container: timeOffsets without a new time namespace");
  }
  return CheckNames(request.spec, namespaces);
}

// Who would answer what the filter asks.
Status CheckListener(const MakeRequest& request, const SeccompFilter& filter) {
  const std::optional<oci::Seccomp>& seccomp = request.spec.linux_spec.seccomp;
  if (!seccomp || !filter.notifies || request.takes_listener) {
    return {};
  }
  const std::string& path = seccomp->listener_path;
  if (path.empty()) {
    return Fail(Code::kInvalidArgument,
                "make the filter of linux.seccomp: it has SCMP_ACT_NOTIFY, and there is no "
                "listenerPath: nobody would answer");
  }
  return request.id.empty()
             ? Status(Fail(Code::kInvalidArgument,
                           "make the filter of linux.seccomp: the agent at '{}' is to be told the "
                           "container's id, and none was given",
                           path))
             : Status();
}

Result<Prepared> Prepare(MakeRequest wanted, RootSteps* root, const Joined* joined) {
  Prepared prepared{.request = std::move(wanted), .root = root, .joined = joined};
  const MakeRequest& request = prepared.request;
  GANTRY_TRY(prepared.namespaces, OpenNamespaces(request.spec.linux_spec.namespaces));
  GANTRY_CHECK_OK(CheckRequest(request, prepared.namespaces, root != nullptr));
  if (request.spec.linux_spec.seccomp) {
    GANTRY_TRY(prepared.filter, CompileSeccomp(*request.spec.linux_spec.seccomp));
    GANTRY_CHECK_OK(CheckListener(request, *prepared.filter));
  }
  GANTRY_TRY(prepared.proc, OpenProc());
  if (request.program != nullptr) {
    prepared.stack = request.program->StackOfThread();
  }
  return prepared;
}

// Null: nobody of the node's is to be told.
std::shared_ptr<const SeccompAgent> AgentOf(const Prepared& prepared) {
  const MakeRequest& request = prepared.request;
  const std::optional<oci::Seccomp>& seccomp = request.spec.linux_spec.seccomp;
  if (!seccomp || !prepared.filter || !prepared.filter->notifies || request.takes_listener) {
    return nullptr;
  }
  return std::make_shared<const SeccompAgent>(
      SeccompAgent{.path = seccomp->listener_path,
                   .metadata = seccomp->listener_metadata,
                   .id = request.id,
                   .status = prepared.joined == nullptr ? "created" : "running",
                   .init = prepared.joined == nullptr ? 0 : prepared.joined->init,
                   .bundle = request.bundle,
                   .annotations = request.spec.annotations});
}

std::vector<std::string> WarningsOf(const Prepared& prepared) {
  std::vector<std::string> warnings;
  if (const auto& sets = prepared.request.spec.process.capabilities) {
    for (const std::string& name : sets->unknown) {
      warnings.push_back(Format("capability '{}' is not known: left out", name));
    }
  }
  if (prepared.filter) {
    for (const std::string& name : prepared.filter->unknown) {
      warnings.push_back(Format("system call '{}' is not known to libseccomp: left out", name));
    }
  }
  return warnings;
}

// The maker's side of the making, from the first child on.
class Making {
 public:
  Making(const Prepared& prepared, UniqueFd channel, pid_t first, UniqueFd first_pidfd)
      : prepared_(prepared), first_(first), first_pidfd_(std::move(first_pidfd)) {
    parts_.channel = std::move(channel);
    parts_.sibling = prepared.request.sibling;
  }

  Result<MadeProcess> Serve() {
    Status status = ServeUntilReady();
    if (!status) {
      return std::unexpected(GiveUp(std::move(status).error()));
    }
    CollectFirst();
    parts_.warnings = WarningsOf(prepared_);
    parts_.agent = AgentOf(prepared_);
    return MadeProcess(std::move(parts_));
  }

 private:
  Status ServeUntilReady() {
    for (;;) {
      if (parts_.pid == 0) {
        GANTRY_CHECK_OK(AwaitNewsOfFirst());
      }
      GANTRY_TRY(Message message, Receive(parts_.channel.get()));
      if (message.word == Word::kReady) {
        return SetLimits(parts_.pid, prepared_.request.spec.process, message.pid);
      }
      GANTRY_CHECK_OK(Serve(message));
    }
  }

  // A first child that is killed between the birth of the second and the word of it leaves the
  // channel open: the second has it, and waits.
  Status AwaitNewsOfFirst() const {
    pollfd either[] = {{.fd = parts_.channel.get(), .events = POLLIN, .revents = 0},
                       {.fd = first_pidfd_.get(), .events = POLLIN, .revents = 0}};
    while (::poll(either, 2, -1) < 0) {
      if (errno != EINTR) {
        return FailErrno(errno, "hear of the container");
      }
    }
    // What it said before it ended is there by then.
    return either[0].revents != 0
               ? Status()
               : Fail(Code::kUnavailable, "hear of the container: its process has ended");
  }

  Status Serve(Message& message) {
    const oci::LinuxSpec& spec = prepared_.request.spec.linux_spec;
    switch (message.word) {
      case Word::kMapIds:
        GANTRY_CHECK_OK(WriteIdMaps(prepared_.proc.get(), first_, spec));
        return Send(parts_.channel.get(), Word::kGo);
      case Word::kSetClocks:
        GANTRY_CHECK_OK(WriteClocks(prepared_.proc.get(), first_, spec.time_offsets));
        return Send(parts_.channel.get(), Word::kGo);
      case Word::kBorn:
        parts_.pid = message.pid;
        parts_.pidfd = std::move(message.fd);
        return Send(parts_.channel.get(), Word::kGo);
      case Word::kConsole:
        parts_.console = std::move(message.fd);
        return {};
      default:
        return Fail(Code::kInternal, "make a container: its process said {}",
                    static_cast<int>(message.word));
    }
  }

  std::string CollectFirst() {
    return parts_.sibling ? std::string() : Collect(std::exchange(first_, 0));
  }

  // Nothing of it is left; why it failed, where its processes could not say it.
  Error GiveUp(Error error) {
    const bool silent = error.code == Code::kUnavailable;
    parts_.channel.reset();
    Signal(first_pidfd_, SIGKILL);
    Signal(parts_.pidfd, SIGKILL);
    std::string how = CollectFirst();
    if (parts_.pid > 0 && !parts_.sibling) {
      how = Collect(parts_.pid);
    }
    if (silent) {
      error.message += how;
    }
    return error;
  }

  const Prepared& prepared_;
  pid_t first_;
  UniqueFd first_pidfd_;
  MadeProcess::Parts parts_;
};

// By reference: what is on the stack here stays with a guest for its life.
Result<MadeProcess> MakeBy(Prepared& prepared) {
  const MakeRequest& request = prepared.request;
  GANTRY_TRY(auto ends, MakeChannel());
  UniqueFd pidfd;
  GANTRY_TRY(const pid_t first, CloneProcess(request.sibling ? CLONE_PARENT : 0, &pidfd));
  if (first == 0) {
    RunFirstChild(prepared, ends.second.get());
  }
  ends.second.reset();
  return Making(prepared, std::move(ends.first), first, std::move(pidfd)).Serve();
}

}  // namespace

Result<MadeProcess> MakeWith(MakeRequest request, RootSteps* root) {
  auto prepared = Prepare(std::move(request), root, nullptr);
  return prepared ? MakeBy(*prepared) : std::unexpected(std::move(prepared).error());
}

Result<MadeProcess> MakeIn(MakeRequest request, const Joined& joined, int init) {
  auto prepared = Prepare(std::move(request), nullptr, &joined);
  if (!prepared) {
    return std::unexpected(std::move(prepared).error());
  }
  GANTRY_TRY(prepared->namespaces, NamespacesOf(init, joined.init));
  // All of it has been looked up by now, by its number.
  GANTRY_CHECK_OK(CheckStillThere(init));
  return MakeBy(*prepared);
}

MadeProcess::MadeProcess(Parts parts) : parts_(std::move(parts)) {}

MadeProcess::~MadeProcess() {
  if (!parts_.channel) {
    return;  // Started, or moved from.
  }
  parts_.channel.reset();
  Signal(parts_.pidfd, SIGKILL);
  if (!parts_.sibling) {
    Collect(parts_.pid);
  }
}

Status MadeProcess::TakeListener(UniqueFd fd, UniqueFd* listener) const {
  if (parts_.agent) {
    return TellAgent(*parts_.agent, parts_.pid, fd.get());
  }
  if (listener == nullptr) {
    return Fail(Code::kInvalidArgument,
                "start the container's process: its filter has a listener, which nobody takes");
  }
  *listener = std::move(fd);
  return {};
}

Status MadeProcess::Start(UniqueFd* listener) {
  const UniqueFd channel = std::move(parts_.channel);
  if (!channel) {
    return Fail(Code::kFailedPrecondition, "start the container's process: it was started before");
  }
  Status status = Send(channel.get(), Word::kGo);
  while (status) {
    auto message = Receive(channel.get());
    if (message && message->word == Word::kListener) {
      status = TakeListener(std::move(message->fd), listener);
      continue;
    }
    if (!message && message.error().code == Code::kUnavailable) {
      return {};  // Its end of the channel is closed by the execution.
    }
    status = message ? Fail(Code::kInternal, "start the container's process: it said {}",
                            static_cast<int>(message->word))
                     : Status(std::unexpected(std::move(message).error()));
  }
  Signal(parts_.pidfd, SIGKILL);
  if (!parts_.sibling) {
    Collect(parts_.pid);
  }
  return status;
}

}  // namespace gantry::container
