// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/container.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/criu.h"
#include "plugins/runc/exec.h"
#include "plugins/runc/exec_fifo.h"
#include "plugins/runc/launch.h"

namespace gantry::runc {
namespace {

constexpr const char* kInitPrefix = "init";
/// Memory is written out or read back: a checkpoint may take this many times
/// the limit of the other calls.
constexpr int kCheckpointFactor = 10;

/// What `Save` keeps: the init, and the binary whose state format was used.
struct Saved {
  RecordedProcess init;
  std::string binary;
};

Result<Saved> ParseSaved(std::string_view blob) {
  const size_t first = blob.find(' ');
  const size_t second = blob.find(' ', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) {
    return Fail(Code::kInternal, "read the saved state: not of this backend");
  }
  GANTRY_TRY(const int64_t pid, ParseNumber(blob.substr(0, first)));
  GANTRY_TRY(const int64_t start, ParseNumber(blob.substr(first + 1, second - first - 1)));
  return Saved{{{static_cast<int32_t>(pid)}, static_cast<uint64_t>(start)},
               std::string(blob.substr(second + 1))};
}

bool IsRunc(const std::string& binary) {
  return std::string_view(binary).substr(binary.rfind('/') + 1).starts_with("runc");
}

}  // namespace

RuncContainer::RuncContainer(const ContainerRequest& request, ContainerContext& context,
                             OciCommand command, SandboxContext& sandbox)
    : remains_{request.id, request.bundle, {}},
      terminal_(request.terminal),
      checkpoint_(request.checkpoint),
      command_(std::move(command)),
      context_(&context),
      sandbox_(&sandbox) {}

std::string RuncContainer::ReaderName() const { return Format("exec.fifo/{}", init_->pid().value); }

std::string RuncContainer::Tag() const { return "create/" + remains_.id.str(); }

ExecPlace RuncContainer::Place() const {
  return {remains_.id, remains_.bundle, command_, sandbox_};
}

Status RuncContainer::ClearStale() {
  const RuntimeState state = ReadState(StateDirectory());
  if (state.kind == StateKind::kNone) {
    return {};
  }
  if (state.kind == StateKind::kUnknown || IsAlive(state)) {
    return Fail(Code::kAlreadyExists,
                "create container '{}': the OCI runtime has one of that id, in '{}'",
                remains_.id.str(), StateDirectory());
  }
  sandbox_->Log(LogLevel::kWarning,
                "container '" + remains_.id.str() + "': removing what a dead one of that id left");
  return TearDown(command_, *sandbox_, remains_, nullptr);
}

Status RuncContainer::Take(std::shared_ptr<HostProcess> init) {
  init_ = std::move(init);
  Status cgroups = context_->UseCgroupsOf(*init_);
  if (!cgroups && cgroups.error().code != Code::kNotFound) {
    return cgroups;
  }
  // Not found: it has ended already, and its exit is on its way.
  return {};
}

Status RuncContainer::SaveState() {
  GANTRY_TRY(const std::string binary, command_.Binary());
  return context_->Save(Format("{} {} {}", init_->pid().value, init_->start_time(), binary));
}

Status RuncContainer::LaunchInit(std::string verb, std::vector<std::string> args,
                                 std::vector<std::string> env, const StreamNames& saved) {
  context_->UseStateDirs({StateDirectory()});
  if (remains_.Spec().has_poststop || command_.options().systemd_cgroup) {
    GANTRY_TRY(HostCommand cleanup, command_.ForcedDelete(remains_.id, remains_.bundle));
    context_->UseCleanup(std::move(cleanup));
  }
  Launch launch;
  launch.verb = std::move(verb);
  launch.container = remains_.id;
  launch.args = std::move(args);
  launch.env = std::move(env);
  std::ranges::transform(saved, launch.needed_streams.begin(),
                         [](const std::string& name) { return !name.empty(); });
  AddFlag(launch.args, command_.options().no_pivot_root, "--no-pivot");
  launch.bundle = remains_.bundle;
  launch.file_prefix = kInitPrefix;
  launch.console_name = "tty";
  launch.tag = Tag();
  GANTRY_TRY(auto init, LaunchProcess(command_, *sandbox_, context_->init(), std::move(launch)));
  GANTRY_CHECK_OK(Take(std::move(init)));
  GANTRY_CHECK_OK(SaveState());
  if (terminal_) {
    ForgetTerminal(*sandbox_, Tag());
  }
  return {};
}

Status RuncContainer::Create(const std::string& spec_json) {
  GANTRY_TRY(remains_.spec, ReadSpec(spec_json));
  GANTRY_CHECK_OK(ChooseCgroupManager());
  if (restores()) {
    GANTRY_TRY([[maybe_unused]] const std::string criu, FindCriu(command_.options()));
  }
  GANTRY_TRY(const std::string binary, command_.Binary());
  command_.Pin(binary);
  GANTRY_CHECK_OK(CheckMounts());
  GANTRY_CHECK_OK(ClearStale());
  if (restores()) {
    return {};
  }
  GANTRY_TRY(const std::vector<std::string> cgroups,
             cgroup::CgroupDirectories(remains_.Spec().cgroups_path));
  remains_.made_cgroup = cgroups.empty();
  std::vector<std::string> args = {"--bundle", remains_.bundle};
  AddFlag(args, command_.options().no_new_keyring, "--no-new-keyring");
  Status made = LaunchInit("create", std::move(args));
  if (!made) {
    ForgetTerminal(*sandbox_, Tag());
    const Status undone = TearDown(command_, *sandbox_, remains_, init_.get());
    if (!undone) {
      sandbox_->Log(LogLevel::kError, "undo the creation of container '" + remains_.id.str() +
                                          "': " + undone.error().message);
    }
  }
  return made;
}

Status RuncContainer::Restore() {
  GANTRY_TRY(const std::string binary, command_.Binary());
  GANTRY_CHECK_OK(ChooseCgroupManager());
  std::vector<std::string> args = {"--bundle", remains_.bundle, "--image-path", checkpoint_};
  const std::string& asked = command_.options().criu_work_path;
  const std::string work = asked.empty() ? remains_.bundle + "/criu-work" : asked;
  GANTRY_CHECK_OK(MakeWorkDirectory(work));
  args.insert(args.end(), {"--work-path", work});
  args.emplace_back("--detach");
  GANTRY_TRY(const StreamNames streams, ReadStreams(checkpoint_));
  GANTRY_TRY(std::vector<std::string> env,
             ConfigureCriu(CriuVerb::kRestore, CriuConfigPath(), streams));
  // The keeper is the subreaper; runc would make itself one in passing.
  AddFlag(args, IsRunc(binary), "--no-subreaper");
  Status made = WithCriusWords(LaunchInit("restore", std::move(args), std::move(env), streams),
                               work + "/restore.log");
  if (!made) {
    IgnoreError(TearDown(command_, *sandbox_, remains_, init_.get()), "the first error counts");
  }
  return made;
}

Status RuncContainer::Start() {
  if (restores() && init_ == nullptr) {
    return Restore();
  }
  if (init_ == nullptr) {
    return Fail(Code::kFailedPrecondition, "start container '{}': it has no init process",
                remains_.id.str());
  }
  if (recovered_) {
    GANTRY_TRY(const bool started, HasStarted());
    if (started) {
      return {};
    }
  }
  return remains_.Spec().has_poststart ? RunStart() : Release();
}

Result<bool> RuncContainer::HasStarted() {
  if (init_ == nullptr) {
    return false;
  }
  const StateKind kind = ReadState(StateDirectory()).kind;
  if (kind == StateKind::kRunc && init_->Ended() && Exists(FifoPath())) {
    // It has ended there, and may have left its byte: `Release` finds out.
    return false;
  }
  GANTRY_TRY(const bool waits, HoldsFifo(init_->pid(), FifoPath()));
  if (waits || (kind != StateKind::kCrun && kind != StateKind::kRunc)) {
    return false;
  }
  // What the start would have done next.
  sandbox_->Drop(ReaderName());
  GANTRY_CHECK_OK(RemoveFile(FifoPath()));
  return true;
}

Status RuncContainer::Release() {
  const Deadline deadline = std::chrono::steady_clock::now() + command_.Limit();
  ReleaseAids aids;
  aids.again = recovered_;
  if (recovered_) {
    aids.reader = sandbox_->Take(ReaderName()).value_or(UniqueFd());
  }
  bool kept = recovered_;
  aids.keep_reader = [&](const UniqueFd& reader) {
    kept = true;
    return sandbox_->Store(ReaderName(), reader);
  };
  Status released = ReleaseInit(FifoPath(), *init_, deadline, aids);
  if (kept) {
    sandbox_->Drop(ReaderName());
  }
  if (!released && released.error().code == Code::kNotFound) {
    // A runtime that waits in another way.
    return RunStart();
  }
  return released;
}

Status RuncContainer::RunStart() {
  OciCall call;
  call.verb = "start";
  call.object = remains_.id.str();
  call.args = {remains_.id.str()};
  call.bundle = remains_.bundle;
  call.log_name = "start.log";
  call.capture = true;
  call.limit = command_.Limit();
  return command_.Run(std::move(call));
}

Status RuncContainer::Delete() {
  if (recovered_ && init_ != nullptr) {
    sandbox_->Drop(ReaderName());
  }
  return TearDown(command_, *sandbox_, remains_, init_.get(), sandbox_->TimeLeft());
}

Status RuncContainer::Checkpoint(const CheckpointRequest& request) {
  GANTRY_TRY([[maybe_unused]] const std::string criu, FindCriu(command_.options()));
  const Options& options = command_.options();
  const std::string& image = request.path.empty() ? options.criu_image_path : request.path;
  if (image.empty()) {
    return Fail(Code::kInvalidArgument, "checkpoint container '{}': no path to put it",
                remains_.id.str());
  }
  std::string work = request.work_path.empty() ? options.criu_work_path : request.work_path;
  if (work.empty()) {
    work = remains_.bundle + "/criu-work";
  }
  GANTRY_CHECK_OK(MakeWorkDirectory(work));
  const StreamNames streams = init_ == nullptr ? StreamNames() : StreamNamesOf(init_->pid());
  OciCall call;
  GANTRY_TRY(call.env, ConfigureCriu(CriuVerb::kDump, CriuConfigPath(), streams));
  call.verb = "checkpoint";
  call.object = remains_.id.str();
  call.args = CheckpointFlags(request);
  call.args.insert(call.args.end(),
                   {"--image-path", image, "--work-path", work, remains_.id.str()});
  call.bundle = remains_.bundle;
  call.log_name = "checkpoint.log";
  call.capture = true;
  call.limit = command_.Limit(kCheckpointFactor);
  GANTRY_CHECK_OK(WithCriusWords(command_.Run(std::move(call)), work + "/dump.log"));
  return SaveStreams(image, streams);
}

Result<std::unique_ptr<Process>> RuncContainer::Exec(const ExecRequest& request,
                                                     ProcessContext& context) {
  return std::make_unique<RuncExec>(Place(), request, context);
}

Result<std::unique_ptr<Process>> RuncContainer::RecoverExec(const ExecRequest& request,
                                                            ProcessContext& context, bool started) {
  auto exec = std::make_unique<RuncExec>(Place(), request, context);
  if (started) {
    GANTRY_CHECK_OK(exec->Recover());
  }
  return exec;
}

Status RuncContainer::Recover(const std::string& blob) {
  recovered_ = true;
  if (!blob.empty()) {
    // Saved when the OCI runtime had ended.
    return RecoverSaved(blob);
  }
  bool runtime_failed = false;
  if (const auto runtime = sandbox_->FindSpawned(Tag())) {
    const auto end = runtime->Wait(command_.Limit());
    runtime_failed = !end || end->raw != 0;
    if (!end) {
      EndHanging(*runtime);
    }
  }
  if (restores()) {
    // To be restored at Start: a restore that was cut short is begun again.
    return TearDown(command_, *sandbox_, remains_, nullptr);
  }
  if (runtime_failed) {
    return AbortRecovery("its creation failed");
  }
  if (terminal_) {
    return AbortRecovery("its terminal was on the way");
  }
  return RecoverUnsaved();
}

Status RuncContainer::RecoverSaved(const std::string& blob) {
  GANTRY_TRY(Saved saved, ParseSaved(blob));
  command_.Pin(std::move(saved.binary));
  if (terminal_) {
    ForgetTerminal(*sandbox_, Tag());
  }
  auto init = sandbox_->Recover(saved.init.pid, saved.init.start_time);
  if (!init && init.error().code != Code::kNotFound) {
    return std::unexpected(std::move(init).error());
  }
  if (!init) {
    // It ran, it is gone, and its end is lost with whoever kept it.
    context_->init().Exited(UnknownExit());
    return {};
  }
  init_ = std::move(*init);
  return context_->init().Bind(init_);
}

Status RuncContainer::RecoverUnsaved() {
  const RuntimeState state = ReadState(StateDirectory());
  const auto recorded = ReadPidFile(PidFile(remains_.bundle, kInitPrefix));
  if (!recorded || state.pid != recorded->pid) {
    return AbortRecovery("its creation was cut short");
  }
  auto init = sandbox_->Recover(state.pid, state.start_time);
  if (!init) {
    init = sandbox_->Adopt(state.pid);
  }
  if (!init || (*init)->start_time() != state.start_time) {
    return AbortRecovery("its init process is gone");
  }
  GANTRY_CHECK_OK(context_->init().Bind(*init));
  GANTRY_CHECK_OK(Take(std::move(*init)));
  return SaveState();
}

Status RuncContainer::AbortRecovery(const std::string& reason) {
  ForgetTerminal(*sandbox_, Tag());
  GANTRY_CHECK_OK(TearDown(command_, *sandbox_, remains_, nullptr));
  return Fail(Code::kAborted, "recover container '{}': {}", remains_.id.str(), reason);
}

}  // namespace gantry::runc
