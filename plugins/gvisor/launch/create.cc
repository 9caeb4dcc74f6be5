// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/create.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/child.h"
#include "plugins/gvisor/launch/create_documents.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/sentry_start.h"

namespace gantry::gvisor {
namespace {

using std::string_literals::operator""s;

constexpr const char* kCreateTag = "create";
/// What ends has nothing to wait for but the kernel.
constexpr std::chrono::seconds kCommandEndLimit{5};
/// The spec is in it.
constexpr size_t kMaxState = size_t{64} << 20;
constexpr size_t kMaxLog = size_t{64} << 10;
constexpr size_t kMaxArguments = size_t{256} << 10;

std::string RootOf(const std::string& bundle) { return bundle + "/runsc"; }

Status WriteBundle(const std::string& root, const CreateRequest& wanted, std::optional<int> image) {
  GANTRY_TRY(const std::string document, CreateDocument(wanted.spec, image));
  constexpr mode_t kFolder = 0700;
  constexpr mode_t kFile = 0600;
  if (mkdir(root.c_str(), kFolder) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", root);
  }
  return WriteFile(root + "/config.json", document, kFile);
}

Result<SpawnRequest> MakeRequest(CreateRequest& wanted) {
  const std::string root = RootOf(wanted.bundle);
  SpawnBuilder child;
  GANTRY_TRY(const auto flags, FlagsFor(wanted.runsc, wanted.flags, root));
  child.Add(flags);
  // Its words must be JSON whatever the flags say.
  GANTRY_TRY(UniqueFd log, wanted.log.Duplicate());
  const std::string path = OwnPath(child.Pass(std::move(log)));
  child.Add("--log=" + path);
  child.Add("--log-format=json");
  const LogFlags& logs = wanted.flags.logs;
  for (const auto& [flag, value] :
       {std::pair("panic-log", logs.panic.empty() ? path : logs.panic),
        std::pair("debug-log", logs.debug), std::pair("debug-command", logs.commands),
        std::pair("coverage-report", logs.coverage)}) {
    if (!value.empty() && wanted.runsc.dialect.global.contains(flag)) {
      child.Add(Format("--{}={}", flag, value));
    }
  }
  // Born in the pod's, with limits that are the core's to set.
  child.Add("--ignore-cgroups=true");
  child.Add("create");
  child.Add("--bundle=" + root);
  std::optional<int> image;
  if (wanted.image) {
    image = child.Pass(std::move(wanted.image));
  }
  GANTRY_CHECK_OK(WriteBundle(root, wanted, image));
  child.Add(wanted.id);
  GANTRY_TRY(SpawnRequest request, child.Finish("runsc", wanted.runsc.runsc.file));
  for (size_t number = 0; number < wanted.stdio.size(); ++number) {
    if (wanted.stdio[number]) {
      request.fds.emplace_back(std::move(wanted.stdio[number]), static_cast<int>(number));
    }
  }
  request.rlimits = SentryLimits();
  request.cgroups = std::move(wanted.cgroups);
  request.tag = kCreateTag;
  return request;
}

std::string WordsIn(const UniqueFd& log) { return CreateWords(LastBytes(log, kMaxLog)); }

Status Await(HostProcess& command, const CreateRequest& wanted, Deadline deadline) {
  const auto end = command.Wait(Left(deadline));
  if (!end) {
    IgnoreError(EndProcess(&command, kCommandEndLimit), "the kernel ends it in its time");
    return Fail(end.error().code, "run 'runsc create' for '{}': it is not done in time: {}",
                wanted.id, WordsIn(wanted.log));
  }
  if (end->raw != 0) {
    return Fail(Code::kInternal, "run 'runsc create' for '{}': it ended with {}: {}", wanted.id,
                end->code(), WordsIn(wanted.log));
  }
  return {};
}

/// The only one there is: how it is called is the build's to know.
Result<CreateState> ReadState(const std::string& root) {
  GANTRY_TRY(const auto names, ListDirectory(root));
  for (const std::string& name : names) {
    if (name.ends_with(".state")) {
      GANTRY_TRY(const std::string text, ReadFile(Format("{}/{}", root, name), kMaxState));
      return ReadCreateState(text);
    }
  }
  return Fail(Code::kInternal, "read the state of 'runsc create': it has left none in '{}'", root);
}

/// Releases since 2026 keep a network namespace for gofers that the command starts later, none
/// here. Source: runsc 2026-09, runsc/container/container.go, pinNullNetNS.
Status Unpin(const std::string& root) {
  const std::string path = root + "/null-netns";
  if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != ENOENT &&
      errno != EINVAL) {
    return FailErrno(errno, "unmount '{}'", path);
  }
  return {};
}

/// runsc gives its flags to each process that it starts.
bool RunsWith(const std::string& root, HostPid pid) {
  std::string argument = "\0--root="s;
  argument += root;
  argument += '\0';
  const auto arguments = ReadFile(Format("/proc/{}/cmdline", pid.value), kMaxArguments);
  return arguments && arguments->contains(argument);
}

/// Those whose parent had no time to write them down.
Status EndStrays(SandboxContext& context, const std::string& root,
                 std::chrono::milliseconds limit) {
  GANTRY_TRY(const auto names, ListDirectory("/proc"));
  for (const std::string& name : names) {
    const auto number = ParseNumber(name);
    const HostPid pid{number ? static_cast<int32_t>(*number) : 0};
    if (!pid || !RunsWith(root, pid)) {
      continue;
    }
    const auto process = context.Adopt(pid);
    // From here on the number is that of this process.
    if (process && RunsWith(root, pid)) {
      GANTRY_CHECK_OK(EndProcess(process->get(), limit));
    }
  }
  return {};
}

}  // namespace

Result<Created> RunCreate(SandboxContext& context, CreateRequest wanted, Deadline deadline) {
  const std::string root = RootOf(wanted.bundle);
  GANTRY_TRY(SpawnRequest request, MakeRequest(wanted));
  {
    GANTRY_TRY(const auto command, context.Spawn(std::move(request)));
    GANTRY_CHECK_OK(Await(*command, wanted, deadline));
  }
  GANTRY_TRY(CreateState state, ReadState(root));
  Created created;
  created.socket = std::move(state.socket);
  GANTRY_TRY(created.sentry, context.Adopt({state.sentry}));
  if (state.gofer != 0) {
    GANTRY_TRY(created.gofer, context.Adopt({state.gofer}));
  }
  GANTRY_CHECK_OK(Unpin(root));
  return created;
}

Status RemoveCreated(SandboxContext& context, const std::string& bundle,
                     std::chrono::milliseconds limit) {
  const std::string root = RootOf(bundle);
  if (!Exists(root)) {
    return {};
  }
  // While it runs it may start others.
  GANTRY_CHECK_OK(EndProcess(context.FindSpawned(kCreateTag).get(), limit));
  GANTRY_CHECK_OK(EndStrays(context, root, limit));
  GANTRY_CHECK_OK(Unpin(root));
  return RemoveTree(root);
}

Status CreateLauncher::Start(Launch& launch) const {
  launch.record.by_create = true;
  SentryRequest& wanted = launch.wanted;
  // The command makes them itself, where there is none.
  GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(wanted.spec, launch.pod.id().str())));
  CreateRequest create{.runsc = runsc(),
                       .spec = wanted.spec,
                       .flags = launch.pod.flags(),
                       .id = launch.RootId(),
                       .bundle = wanted.bundle,
                       .log = launch.log,
                       .cgroups = wanted.cgroups,
                       .stdio = std::move(wanted.stdio),
                       .image = std::move(wanted.image)};
  SandboxContext& context = launch.pod.context();
  GANTRY_TRY(Created created, RunCreate(context, std::move(create), launch.pod.StepDeadline()));
  launch.sentry = std::move(created.sentry);
  launch.gofer.process = std::move(created.gofer);
  launch.record.socket = std::move(created.socket);
  if (launch.gofer.process) {
    launch.record.gofer_pid = launch.gofer.process->pid().value;
    launch.record.gofer_start_time = launch.gofer.process->start_time();
  }
  return {};
}

}  // namespace gantry::gvisor
