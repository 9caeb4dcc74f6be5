// SPDX-License-Identifier: Apache-2.0
//
// A backend that breaks the rules where its options say so (mischief.h), and keeps
// to them elsewhere: a container is a `sleep`, a pod another one.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/plugin.h>

#include "tests/contract/misbehave/late.h"
#include "tests/contract/misbehave/mischief.h"

namespace gantry::misbehave {
namespace {

constexpr std::chrono::seconds kEndLimit(10);
constexpr size_t kHuge = size_t{8} << 20;
/// More than are told, and few enough to be made on a busy machine.
constexpr size_t kManyProcesses = 500'001;
constexpr size_t kWatches = 4;

SpawnRequest Sleep(const char* seconds, std::string tag = "") {
  SpawnRequest request;
  request.argv = {"/bin/sleep", seconds};
  request.tag = std::move(tag);
  return request;
}

Status EndProcess(HostProcess& process) {
  IgnoreError(process.Signal(SIGKILL), "it may have ended");
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, process.Wait(kEndLimit));
  return {};
}

std::unexpected<Error> Nonsense() {
  return std::unexpected(Error{static_cast<Code>(4711), 0, NoText() + std::string(kHuge, 'x'), {}});
}

/// Says what cannot be of a process.
void Lie(ProcessContext& process) {
  for (const int32_t pid : {-7, 0, 1, std::numeric_limits<int32_t>::max()}) {
    process.SetPid(HostPid{pid});
  }
  process.Exited({std::numeric_limits<uint32_t>::max(), std::numeric_limits<int64_t>::min()});
  process.Exited({0, std::numeric_limits<int64_t>::max()});
}

class Runner final : public Process {
 public:
  Runner(Mischief mischief, SandboxContext& sandbox, ProcessContext& context)
      : mischief_(std::move(mischief)), sandbox_(sandbox), context_(context) {}

  Status Start() override {
    mischief_.Enter("ExecStart");
    GANTRY_TRY(process_, sandbox_.Spawn(Sleep("31536001")));
    return context_.Bind(process_);
  }

  Status Delete() override { return process_ ? EndProcess(*process_) : Status(); }

 private:
  const Mischief mischief_;
  SandboxContext& sandbox_;
  ProcessContext& context_;
  std::shared_ptr<HostProcess> process_;
};

class Box final : public Container {
 public:
  Box(Mischief mischief, SandboxContext& sandbox, ContainerContext& context)
      : mischief_(std::move(mischief)), sandbox_(sandbox), context_(context) {}

  ~Box() override {
    if (mischief_.mode == "late") {
      CallLate(mischief_, sandbox_, context_, context_.init());
    }
  }

  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  Status Make() {
    if (mischief_.Is("garbage", "SetPid")) {
      Lie(context_.init());
      context_.UseStateDirs({"/", "", "..", "/etc", "/tmp/../etc/x", std::string("/a/b\0c", 6)});
      context_.UseCleanup({});
      context_.UseCleanup({{"rm", "-rf", "/"}, {}, "/"});
      context_.UseCleanup({{"/bin/rm", "-rf", std::string(20'000, '/')}, {}, "/"});
      context_.UseCleanup({{"/bin/rm", std::string("-rf\0/", 5)}, {}, "/"});
      return {};
    }
    GANTRY_CHECK_OK(StartWatches());
    GANTRY_TRY(process_, sandbox_.Spawn(Sleep("31536000", "init")));
    return context_.init().Bind(process_);
  }

  Status Start() override {
    mischief_.Enter("Start");
    if (mischief_.Is("forget", "Start")) {
      const pid_t child = fork();
      if (child == 0) {
        _exit(0);
      }
      // It has ended when this returns, and nobody has reaped it.
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    }
    return mischief_.Is("garbage", "Start") ? Status(Nonsense()) : Status();
  }

  Status Kill(uint32_t signal) override {
    mischief_.Enter("Kill");
    return Container::Kill(signal);
  }

  Status KillAll(uint32_t signal) override {
    mischief_.Enter("KillAll");
    return Container::KillAll(signal);
  }

  Status Pause() override {
    mischief_.Enter("Pause");
    return Container::Pause();
  }

  Result<ContainerMetrics> Stats() override {
    mischief_.Enter("Stats");
    if (mischief_.Is("garbage", "Stats")) {
      ContainerMetrics metrics;
      metrics.interfaces.resize(kManyProcesses);
      metrics.interfaces.front().name = NoText();
      return metrics;
    }
    return Container::Stats();
  }

  Result<std::vector<ProcessInfo>> Processes() override {
    mischief_.Enter("Processes");
    if (mischief_.Is("garbage", "Processes")) {
      return std::vector<ProcessInfo>(kManyProcesses,
                                      ProcessInfo{std::numeric_limits<uint32_t>::max(), {}});
    }
    return Container::Processes();
  }

  Result<std::unique_ptr<Process>> Exec(const ExecRequest&, ProcessContext& context) override {
    mischief_.Enter("Exec");
    if (mischief_.Is("garbage", "Exec")) {
      return nullptr;
    }
    return std::make_unique<Runner>(mischief_, sandbox_, context);
  }

  Status Delete() override {
    mischief_.Enter("Delete");
    return process_ ? EndProcess(*process_) : Status();
  }

 private:
  /// Each has something to tell, and tells it until the gate is opened.
  Status StartWatches() {
    for (size_t i = 0; i < (mischief_.mode == "watch" ? kWatches : 0); ++i) {
      std::array<int, 2> ends{};
      if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return FailErrno(errno, "make a pipe");
      }
      // Without a writer its end can be read for ever.
      const UniqueFd writer(ends[1]);
      const UniqueFd& reader = readers_.emplace_back(ends[0]);
      GANTRY_TRY(auto watch,
                 sandbox_.WatchReadable(reader.get(), [this] { mischief_.AwaitGate(); }));
      watches_.push_back(std::move(watch));
    }
    return {};
  }

  const Mischief mischief_;
  SandboxContext& sandbox_;
  ContainerContext& context_;
  std::shared_ptr<HostProcess> process_;
  std::vector<UniqueFd> readers_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

class Pod final : public Sandbox {
 public:
  Pod(Mischief mischief, SandboxKind kind, SandboxContext& context)
      : mischief_(std::move(mischief)),
        is_pod_(kind == SandboxKind::kPauseless),
        context_(context) {}

  Status Start() override {
    mischief_.Enter("SandboxStart");
    if (mischief_.mode == "forget") {
      GANTRY_TRY([[maybe_unused]] auto tagged, context_.Spawn(Sleep("31536555", "forgotten")));
      GANTRY_TRY([[maybe_unused]] auto nameless, context_.Spawn(Sleep("31536555")));
    }
    if (!is_pod_ || mischief_.Is("garbage", "SandboxStart")) {
      context_.SetPid(HostPid{-1});
      return {};
    }
    GANTRY_TRY(process_, context_.Spawn(Sleep("31536002", "pod")));
    return context_.Bind(process_);
  }

  Status Stop(std::chrono::milliseconds) override {
    mischief_.Enter("Stop");
    return process_ ? EndProcess(*process_) : Status();
  }

  Result<SandboxInfo> Info() override {
    mischief_.Enter("Info");
    if (mischief_.Is("garbage", "Info")) {
      return SandboxInfo{{NoText(), NoText()}, {"", std::string(kHuge, '\x80')}};
    }
    return SandboxInfo();
  }

  SandboxPlatform Platform() override {
    mischief_.Enter("Platform");
    return {NoText(), NoText(), NoText()};
  }

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest&,
                                                     ContainerContext& context) override {
    mischief_.Enter("CreateContainer");
    if (mischief_.Is("garbage", "CreateContainer")) {
      return nullptr;
    }
    if (mischief_.Is("garbage", "Unimplemented")) {
      return Fail(Code::kUnimplemented, "create: not implemented");
    }
    auto box = std::make_unique<Box>(mischief_, context_, context);
    GANTRY_CHECK_OK(box->Make());
    return box;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest&,
                                                      ContainerContext& context,
                                                      const std::string&) override {
    if (mischief_.mode == "crash") {
      return std::make_unique<Box>(mischief_, context_, context);
    }
    return Fail(Code::kUnavailable, "recover: not here");
  }

  Status Shutdown() override {
    mischief_.Enter("Shutdown");
    return process_ ? EndProcess(*process_) : Status();
  }

 private:
  const Mischief mischief_;
  const bool is_pod_;
  SandboxContext& context_;
  std::shared_ptr<HostProcess> process_;
};

class Backend final : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {TEST_BACKEND_NAME, "0.1.0", true, {}}; }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    const Mischief mischief = ReadMischief(request.options_json);
    mischief.Enter("CreateSandbox");
    if (mischief.Is("garbage", "CreateSandbox")) {
      return nullptr;
    }
    return std::make_unique<Pod>(mischief, request.kind, context);
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string&) override {
    const Mischief mischief = ReadMischief(request.options_json);
    mischief.Enter("RecoverSandbox");
    if (mischief.Is("garbage", "RecoverSandbox")) {
      return nullptr;
    }
    if (mischief.mode == "crash") {
      return std::make_unique<Pod>(mischief, request.kind, context);
    }
    return Fail(Code::kUnavailable, "recover: not here");
  }
};

Result<std::unique_ptr<SandboxBackend>> Make(const std::string& options_json) {
  ReadMischief(options_json).Enter("Factory");
  return std::make_unique<Backend>();
}

}  // namespace
}  // namespace gantry::misbehave

GANTRY_PLUGIN(TEST_BACKEND_NAME, "0.1.0", gantry::misbehave::Make);
