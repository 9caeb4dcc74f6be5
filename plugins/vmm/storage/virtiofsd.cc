// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/virtiofsd.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <thread>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/bounded_log.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/hypervisor/vm_end.h"

namespace gantry::vmm {
namespace {

constexpr const char* kLogName = "virtiofsd.log";
constexpr size_t kMaxLog = size_t{64} << 10;
constexpr size_t kLastWords = 600;
constexpr std::chrono::seconds kStopTime{10};

constexpr int kListener = 3;
constexpr int kLog = 2;

constexpr uint64_t Bit(int capability) { return uint64_t{1} << static_cast<unsigned>(capability); }

/// What it keeps itself, and two that it needs to begin: its root is the shared directory
/// (chroot(2)), and it gives up the others for all that it could ever execute.
constexpr uint64_t kCapabilities =
    Bit(CAP_CHOWN) | Bit(CAP_DAC_OVERRIDE) | Bit(CAP_FOWNER) | Bit(CAP_FSETID) | Bit(CAP_SETGID) |
    Bit(CAP_SETUID) | Bit(CAP_MKNOD) | Bit(CAP_SETFCAP) | Bit(CAP_SYS_CHROOT) | Bit(CAP_SETPCAP);

/// A file that a guest knows is a descriptor of it: as many as this process may have.
std::vector<std::pair<int, rlimit>> FileLimit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return {};
  }
  files.rlim_cur = files.rlim_max;
  return {{RLIMIT_NOFILE, files}};
}

}  // namespace

/// What is told of its end, and to whom. What is watched stays readable, so the watch ends with the
/// first call that finds it, by that call itself.
struct Virtiofsd::End {
  explicit End(std::function<void(Error why)> to) : tell(std::move(to)) {}

  /// Readable from its end on.
  UniqueFd ended;
  UniqueFd log;
  Mutex mutex;
  std::condition_variable returned;
  bool told GANTRY_GUARDED_BY(mutex) = false;
  /// Who is telling right now.
  std::thread::id teller GANTRY_GUARDED_BY(mutex);
  std::function<void(Error why)> tell GANTRY_GUARDED_BY(mutex);
  std::unique_ptr<Watch> watch GANTRY_GUARDED_BY(mutex);

  // Whoever ends a watch waits for its call, unless he is that call: so until it is kept nobody is
  // told, and the call comes again.
  void Happened() {
    std::unique_ptr<Watch> over;
    std::function<void(Error why)> to;
    MutexLock lock(mutex);
    if (!watch) {
      return;
    }
    over = std::move(watch);
    if (told || !tell) {
      return;
    }
    told = true;
    teller = std::this_thread::get_id();
    to = std::exchange(tell, nullptr);
    lock.Unlock();
    to(Words());
    lock.Lock();
    teller = std::thread::id();
    returned.notify_all();
  }

  Error Words() const {
    const std::string words = ConsoleTail(LastBytes(log, kLastWords));
    return {.code = Code::kUnavailable,
            .sys_errno = 0,
            .message = Format("virtiofsd has ended, and with it the files of the guest{}{}",
                              words.empty() ? "" : "; its last words: ", words),
            .detail = {}};
  }

  /// Nobody is told from now on, and who is being told has returned, unless he calls this.
  void Silence() {
    std::unique_ptr<Watch> over;
    MutexLock lock(mutex);
    told = true;
    over = std::move(watch);
    returned.wait(lock.native(), [this]() GANTRY_REQUIRES(mutex) {
      return teller == std::thread::id() || teller == std::this_thread::get_id();
    });
  }

  void Keep(std::unique_ptr<Watch> begun) {
    const MutexLock lock(mutex);
    watch = std::move(begun);
  }
};

Result<SpawnRequest> DescribeVirtiofsd(const VirtiofsdRequest& request, UserNamespace users,
                                       UniqueFd listener, UniqueFd log) {
  GANTRY_CHECK_OK(CheckStorageOptions(request.options));
  if (!IsExecutable(request.options.virtiofsd)) {
    return Fail(Code::kFailedPrecondition,
                "start virtiofsd: '{}' is no program; install the package virtiofsd, or set the "
                "option 'virtiofsd'",
                request.options.virtiofsd);
  }
  SpawnRequest spawn;
  spawn.argv = {request.options.virtiofsd,
                Format("--fd={}", kListener),
                "--shared-dir=" + request.shared,
                "--sandbox=chroot",
                "--seccomp=kill",
                "--cache=" + request.options.cache,
                "--xattr",
                "--announce-submounts",
                "--rlimit-nofile=0",
                "--log-level=warn"};
  spawn.fds.emplace_back(std::move(listener), kListener);
  spawn.fds.emplace_back(std::move(log), kLog);
  spawn.cgroups = request.cgroups;
  spawn.new_namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET;
  if (users == UserNamespace::kOwn) {
    spawn.new_namespaces |= CLONE_NEWUSER;
  }
  spawn.mounts = MountPropagation::kSlave;
  spawn.no_new_privs = true;
  spawn.capabilities = kCapabilities;
  spawn.rlimits = FileLimit();
  spawn.tag = Virtiofsd::kTag;
  return spawn;
}

namespace {

/// The node allows none, or no more. Source: clone(2); user_namespaces(7).
bool MayLackUserNamespaces(const Error& error) {
  return error.sys_errno == ENOSPC || error.sys_errno == EUSERS || error.sys_errno == EPERM;
}

Result<std::shared_ptr<HostProcess>> Spawn(SandboxContext& context, const VirtiofsdRequest& request,
                                           UserNamespace users, const UniqueFd& log) {
  GANTRY_TRY(UniqueFd its, log.Duplicate());
  GANTRY_CHECK_OK(RemoveFile(request.socket));
  GANTRY_TRY(UniqueFd listener, ListenUnix(request.socket));
  // It accepts once, and waits for that.
  GANTRY_CHECK_OK(SetNonblocking(listener.get(), false));
  GANTRY_TRY(auto spawn, DescribeVirtiofsd(request, users, std::move(listener), std::move(its)));
  return context.Spawn(std::move(spawn));
}

}  // namespace

Result<std::unique_ptr<Virtiofsd>> Virtiofsd::Watched(SandboxContext& context,
                                                      const std::shared_ptr<HostProcess>& process,
                                                      UniqueFd log,
                                                      const VirtiofsdRequest& request) {
  auto end = std::make_shared<End>(request.ended);
  end->log = std::move(log);
  std::unique_ptr<Virtiofsd> virtiofsd(new Virtiofsd(context, process, end));
  GANTRY_TRY(end->ended, OpenEndOf(ProcessId{process->pid().value, process->start_time()}));
  GANTRY_TRY(auto watch, context.WatchReadable(end->ended.get(), [end] { end->Happened(); }));
  end->Keep(std::move(watch));
  return virtiofsd;
}

Virtiofsd::~Virtiofsd() { end_->Silence(); }

Result<std::unique_ptr<Virtiofsd>> Virtiofsd::Start(SandboxContext& context,
                                                    const VirtiofsdRequest& request) {
  GANTRY_TRY(UniqueFd log, MakeBoundedLog(kMaxLog));
  GANTRY_CHECK_OK(context.Store(kLogName, log));
  auto process = Spawn(context, request, UserNamespace::kOwn, log);
  if (!process && MayLackUserNamespaces(process.error())) {
    context.Log(LogLevel::kWarning,
                Format("virtiofsd has no user namespace of its own, its rights count on the node: "
                       "{} (user.max_user_namespaces?)",
                       process.error().message));
    context.Count("virtiofsd_without_user_namespace");
    process = Spawn(context, request, UserNamespace::kNodes, log);
  }
  if (!process) {
    context.Drop(kLogName);
    return std::unexpected(std::move(process).error().Within("start virtiofsd"));
  }
  auto watched = Watched(context, *process, std::move(log), request);
  if (!watched) {
    IgnoreError((*process)->Signal(SIGKILL), "what cannot be watched is not kept");
  }
  return watched;
}

Result<std::unique_ptr<Virtiofsd>> Virtiofsd::Recover(SandboxContext& context,
                                                      const VirtiofsdRequest& request) {
  const auto process = context.FindSpawned(kTag);
  if (!process) {
    return Fail(Code::kNotFound, "find virtiofsd: it was never started");
  }
  auto log = context.Take(kLogName);
  return Watched(context, process, log ? std::move(*log) : UniqueFd(), request);
}

Status Virtiofsd::Stop() {
  end_->Silence();
  if (!process_->Ended()) {
    Status killed = process_->Signal(SIGKILL);
    if (!killed && killed.error().code != Code::kNotFound) {
      return killed;
    }
    GANTRY_TRY([[maybe_unused]] const WaitStatus ended, process_->Wait(kStopTime));
  }
  context_.Drop(kLogName);
  return {};
}

}  // namespace gantry::vmm
