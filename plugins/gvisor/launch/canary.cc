// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/canary.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/context/lent_context.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/container/root_container.h"
#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/child.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/pause/pause_image.h"
#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr const char* kId = "gantry-canary";

/// `/pause NAME` ends by itself, with status 0 if it could give the pod that name. (Without one
/// it would have to be sent a signal, which in a sentry ends it with another status as long as
/// it has not come to block it.)
std::string SpecOf(const std::string& volume) {
  const Json all = {"CAP_SYS_ADMIN"};
  const Json spec = {
      {"ociVersion", "1.1.0"},
      {"process",
       {{"user", {{"uid", 0}, {"gid", 0}}},
        {"args", {"/pause", kId}},
        {"cwd", "/"},
        {"capabilities", {{"bounding", all}, {"effective", all}, {"permitted", all}}},
        {"noNewPrivileges", true}}},
      {"root", {{"path", "rootfs"}}},
      {"mounts",
       {{{"destination", "/volume"}, {"type", "bind"}, {"source", volume}, {"options", {"bind"}}}}},
      {"linux",
       {{"namespaces",
         {{{"type", "pid"}}, {{"type", "ipc"}}, {{"type", "uts"}}, {{"type", "mount"}}}}}}};
  return spec.dump();
}

/// Removed with all in it.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  ~Directory() {
    if (!path_.empty()) {
      IgnoreError(RemoveTree(path_), "its name is not used again");
    }
  }

  Status Make(const std::vector<std::string>& below) {
    for (const std::string& one : below) {
      struct statvfs mount{};
      if (statvfs(one.c_str(), &mount) != 0 || (mount.f_flag & (ST_NOEXEC | ST_RDONLY)) != 0) {
        continue;
      }
      std::string name = one + "/gantry-canary-XXXXXX";
      if (mkdtemp(name.data()) != nullptr) {
        path_ = name;
        return {};
      }
    }
    return Fail(Code::kFailedPrecondition,
                "make its root: in none of '{}' and so on can it be written and executed",
                below.empty() ? std::string() : below.front());
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whatever the engine's umask is.
Status MakePath(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 || chmod(path.c_str(), mode) != 0) {
    return FailErrno(errno, "make '{}'", path);
  }
  return {};
}

Status WriteProgram(const std::string& path) {
  const std::span<const unsigned char> program = PauseProgram();
  constexpr mode_t kMode = 0755;
  GANTRY_CHECK_OK(
      WriteFile(path, {reinterpret_cast<const char*>(program.data()), program.size()}, kMode));
  if (chmod(path.c_str(), kMode) != 0) {
    return FailErrno(errno, "make '{}' a program", path);
  }
  return {};
}

Result<Flags> FlagsOf(const std::string& platform) {
  GANTRY_TRY(Flags flags, MakeFlags({{"network", "none"}, {"platform", platform}}, {}));
  // Whether a mixed installation may be used is each handler's to say, not whether it starts.
  flags.same_release = false;
  return flags;
}

/// It is the caller's, who has it until the canary is gone.
std::shared_ptr<const Runsc> Lent(const Runsc& runsc) {
  return {std::shared_ptr<const Runsc>(), &runsc};
}

class Canary {
 public:
  Canary(SandboxContext& host, const Runsc& runsc, const CanaryRequest& wanted, Flags flags,
         SandboxId id)
      : context_(host, "canary"), launcher_(Lent(runsc)), wanted_(wanted) {
    Options options;
    options.timeout = wanted.limit;
    pod_ = std::make_unique<Pod>(std::move(id), Namespace(), context_, std::move(options),
                                 std::move(flags), ContainerKind::kAlone);
  }

  Status Run() {
    GANTRY_CHECK_OK(directory_.Make(wanted_.directories));
    Status ran = Launch();
    if (ran) {
      ran = RunProgram();
    }
    context_.BeginRemoval();
    Status removed = RemoveSentry(*pod_, gofer_, directory_.path());
    return ran ? removed : ran;
  }

 private:
  Status Launch() {
    const std::string& bundle = directory_.path();
    constexpr mode_t kMode = 0755;
    for (const char* name : {"/rootfs", "/volume"}) {
      GANTRY_CHECK_OK(MakePath(bundle + name, kMode));
    }
    GANTRY_CHECK_OK(WriteProgram(bundle + "/rootfs/pause"));
    GANTRY_TRY(spec_, MakeSpec({.json = SpecOf(bundle + "/volume"),
                                .rootfs = bundle + "/rootfs",
                                .bundle = bundle},
                               pod_->flags().overlay));
    GANTRY_TRY(
        gofer_,
        StartSentry(*pod_,
                    {.launcher = launcher_, .spec = spec_, .container = kId, .bundle = bundle}));
    return {};
  }

  Status RunProgram() {
    const auto sentry = pod_->sentry();
    const auto process = pod_->process();
    // Once the root has ended, the sentry takes no new connection.
    auto wait = urpc::Connection::Open(sentry->socket(), pod_->StepDeadline());
    if (!wait) {
      return std::unexpected(ToError(wait.error(), "connect to the sentry"));
    }
    GANTRY_CHECK_OK(StartPod(*pod_));
    GANTRY_CHECK_OK(AwaitProgram(*std::move(wait)));
    sentry->Hangup();
    GANTRY_TRY(const WaitStatus end, process->Wait(Left(pod_->StepDeadline())));
    if (end.code() != 0) {
      return Fail(Code::kInternal, "await the sentry's end: it ended with {}: {}", end.code(),
                  LastWords(KeptSentryLog(context_)));
    }
    return {};
  }

  /// Closes the connection: a sentry leaves when nobody is connected.
  Status AwaitProgram(urpc::Connection wait) {
    const Deadline deadline = pod_->StepDeadline();
    if (const auto sent = ContainerManager::SendWait(wait, kId, deadline); !sent) {
      return std::unexpected(ToError(sent.error(), "ask for its program's end"));
    }
    const auto word = ContainerManager::PeekWait(wait, deadline);
    if (!word) {
      return std::unexpected(ToError(word.error(), "await its program's end"));
    }
    if (word->status() != 0) {
      return Fail(Code::kInternal, "await its program's end: it ended with {}", word->status());
    }
    return {};
  }

  LentContext context_;
  const DirectLauncher launcher_;
  const CanaryRequest& wanted_;
  Directory directory_;
  std::unique_ptr<Pod> pod_;
  Spec spec_;
  GoferProcess gofer_;
};

/// Not the build's fault.
bool ShowsNothing(const SandboxContext& context, const Error& error) {
  return error.code == Code::kResourceExhausted || context.TimeLeft().count() == 0;
}

}  // namespace

std::vector<std::string> CanaryDirectories(const std::string& bundle, const std::string& root) {
  // A bundle goes with its sandbox, so does all that an engine that is killed leaves in it.
  // Bundles are below /run, where some distributions let no program be executed. Images can,
  // so somewhere in /var/lib programs may be.
  return {bundle, root, "/var/lib", "/var/tmp"};
}

Status ProveRunsc(SandboxContext& context, const Runsc& runsc, const CanaryRequest& wanted) {
  GANTRY_TRY(Flags flags, FlagsOf(wanted.platform));
  GANTRY_TRY(SandboxId id, SandboxId::Parse(kId));
  Canary canary(context, runsc, wanted, std::move(flags), std::move(id));
  Status proved = canary.Run();
  if (!proved) {
    Error& error = proved.error();
    error.code = ShowsNothing(context, error) ? error.code : Code::kFailedPrecondition;
    error.message = Format("prove '{}' by a canary sandbox: {}", runsc.runsc.path, error.message);
  }
  return proved;
}

}  // namespace gantry::gvisor
