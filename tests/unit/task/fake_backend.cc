// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/task/fake_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/backend/call_deadline.h"
#include "core/backend/context.h"
#include "core/keeper_client/host_processes.h"
#include "core/task/sandboxes.h"

namespace gantry::test {
namespace {

ContainerMetrics Measured() {
  ContainerMetrics metrics;
  metrics.pids.current = 7;
  return metrics;
}

constexpr int64_t kEndedAt = 1'700'000'000'000'000'000;

/// What the fakes have in common: a name, and a count of calls under way.
class FakeObject {
 public:
  FakeObject(FakeBackend& backend, std::string name) : backend_(backend), name_(std::move(name)) {}

  FakeObject(const FakeObject&) = delete;
  FakeObject& operator=(const FakeObject&) = delete;

  ~FakeObject() { backend_.Destroyed(name_, calls_); }

  Status Enter(const std::string& verb, const std::string& arguments = "") {
    ++calls_;
    Status status = Fail(Code::kInternal, "an exception");
    try {
      status = backend_.Enter(verb + " " + name_, arguments);
    } catch (...) {
      --calls_;
      throw;
    }
    --calls_;
    return status;
  }

  FakeBackend& backend() { return backend_; }

  const std::string& name() const { return name_; }

 private:
  FakeBackend& backend_;
  const std::string name_;
  std::atomic<int> calls_ = 0;
};

class FakeExec final : public Process {
 public:
  FakeExec(FakeBackend& backend, std::string name, ProcessContext& context, SandboxContext& sandbox)
      : object_(backend, std::move(name)), context_(context), sandbox_(sandbox) {}

  ~FakeExec() override { object_.backend().Remove(object_.name()); }

  Status Start() override {
    // The process is there before the call has returned.
    GANTRY_CHECK_OK(object_.backend().ComeUp(object_.name(), context_, sandbox_, false));
    return object_.Enter("start");
  }

  Status Recover(const std::string& saved) {
    GANTRY_CHECK_OK(object_.Enter("recover", saved));
    return object_.backend().ComeUp(object_.name(), context_, sandbox_, true);
  }

  Status Kill(uint32_t signal) override { return object_.Enter("kill", std::to_string(signal)); }

  Status ConsoleSignal(uint32_t signal) override {
    return object_.Enter("console", std::to_string(signal));
  }

  Status CloseStdin() override { return object_.Enter("closestdin"); }

  Status Delete() override { return object_.Enter("delete"); }

 private:
  FakeObject object_;
  ProcessContext& context_;
  SandboxContext& sandbox_;
};

}  // namespace

class FakeContainer final : public Container {
 public:
  FakeContainer(FakeBackend& backend, const ContainerRequest& request, ContainerContext& context,
                SandboxContext& sandbox)
      : object_(backend, request.id.str()), context_(context), sandbox_(sandbox) {}

  ~FakeContainer() override { object_.backend().Remove(object_.name()); }

  Status Create() {
    GANTRY_CHECK_OK(object_.backend().Use(context_, false));
    GANTRY_CHECK_OK(object_.backend().ComeUp(object_.name(), context_.init(), sandbox_, false));
    if (const std::string state = object_.backend().StateFor(false); !state.empty()) {
      GANTRY_CHECK_OK(context_.Save(state));
    }
    return object_.Enter("create");
  }

  Status Recover(const std::string& blob) {
    GANTRY_CHECK_OK(object_.Enter("recover", blob));
    GANTRY_CHECK_OK(object_.backend().Use(context_, true));
    return object_.backend().ComeUp(object_.name(), context_.init(), sandbox_, true);
  }

  Result<bool> HasStarted() override {
    GANTRY_CHECK_OK(object_.Enter("has started"));
    return object_.backend().HasStarted(object_.name());
  }

  Status Start() override { return object_.Enter("start"); }

  Status Kill(uint32_t signal) override { return object_.Enter("kill", std::to_string(signal)); }

  Status ConsoleSignal(uint32_t signal) override {
    return object_.Enter("console", std::to_string(signal));
  }

  Status KillAll(uint32_t signal) override {
    return object_.Enter("killall", std::to_string(signal));
  }

  Status Pause() override { return object_.Enter("pause"); }

  Status Resume() override { return object_.Enter("resume"); }

  Status Update(const std::string& json) override { return object_.Enter("update", json); }

  Status Resize(ConsoleSize size) override {
    return object_.Enter("resize", Format("{}x{}", size.width, size.height));
  }

  Status CloseStdin() override { return object_.Enter("closestdin"); }

  Result<ContainerMetrics> Stats() override {
    GANTRY_CHECK_OK(object_.Enter("stats"));
    return Measured();
  }

  Result<std::vector<ProcessInfo>> Processes() override {
    GANTRY_CHECK_OK(object_.Enter("processes"));
    return object_.backend().Processes();
  }

  Status Checkpoint(const CheckpointRequest& request) override {
    return object_.Enter("checkpoint", request.path);
  }

  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override {
    GANTRY_CHECK_OK(object_.Enter("exec", request.id.str()));
    return std::make_unique<FakeExec>(object_.backend(), object_.name() + "/" + request.id.str(),
                                      context, sandbox_);
  }

  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               [[maybe_unused]] bool started) override {
    auto exec = std::make_unique<FakeExec>(
        object_.backend(), object_.name() + "/" + request.id.str(), context, sandbox_);
    GANTRY_CHECK_OK(exec->Recover(request.saved));
    return exec;
  }

  Status Delete() override { return object_.Enter("delete"); }

 private:
  FakeObject object_;
  ContainerContext& context_;
  SandboxContext& sandbox_;
};

namespace {

class FakeSandbox final : public Sandbox {
 public:
  FakeSandbox(FakeBackend& backend, const SandboxRequest& request, SandboxContext& context)
      : object_(backend, "sandbox " + request.id.str()),
        context_(context),
        is_pod_(request.kind == SandboxKind::kPauseless) {}

  ~FakeSandbox() override { object_.backend().Remove(object_.name()); }

  Status Start() override {
    if (is_pod_) {
      GANTRY_CHECK_OK(object_.backend().PodUp(object_.name(), context_, false));
    }
    if (object_.backend().HasServers()) {
      SpawnRequest request;
      request.argv = {"server"};
      request.tag = "server";
      GANTRY_TRY(server_, context_.Spawn(std::move(request)));
    }
    if (const std::string state = object_.backend().StateFor(true); !state.empty()) {
      GANTRY_CHECK_OK(context_.Save(state));
    }
    return object_.Enter("start");
  }

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    auto container = std::make_unique<FakeContainer>(object_.backend(), request, context, context_);
    GANTRY_CHECK_OK(container->Create());
    return container;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override {
    auto container = std::make_unique<FakeContainer>(object_.backend(), request, context, context_);
    GANTRY_CHECK_OK(container->Recover(blob + request.init_saved));
    return container;
  }

  Status Recover() {
    if (object_.backend().HasServers()) {
      server_ = context_.FindSpawned("server");
      EXPECT_NE(server_, nullptr) << "its process was not found again";
    }
    if (is_pod_) {
      GANTRY_CHECK_OK(object_.backend().PodUp(object_.name(), context_, true));
    }
    return {};
  }

  Status Stop(std::chrono::milliseconds) override {
    GANTRY_CHECK_OK(object_.Enter("stop"));
    object_.backend().End(object_.name(), 0);
    return {};
  }

  Result<SandboxInfo> Info() override {
    GANTRY_CHECK_OK(object_.Enter("info"));
    return SandboxInfo{{"colour", "blue"}};
  }

  Result<ContainerMetrics> Metrics() override {
    GANTRY_CHECK_OK(object_.Enter("metrics"));
    return Measured();
  }

  Status Update(const PodResources& resources) override {
    return object_.Enter("update", std::to_string(resources.memory_limit.value_or(0)));
  }

  SandboxPlatform Platform() override { return {"linux", "amd64", ""}; }

  Status Shutdown() override { return object_.Enter("shutdown"); }

 private:
  FakeObject object_;
  SandboxContext& context_;
  const bool is_pod_;
  std::shared_ptr<HostProcess> server_;
};

}  // namespace

Result<std::unique_ptr<Sandbox>> FakeBackend::CreateSandbox(const SandboxRequest& request,
                                                            SandboxContext& context) {
  GANTRY_CHECK_OK(Enter("create sandbox " + request.id.str()));
  return std::make_unique<FakeSandbox>(*this, request, context);
}

Result<std::unique_ptr<Sandbox>> FakeBackend::RecoverSandbox(const SandboxRequest& request,
                                                             SandboxContext& context,
                                                             const std::string& blob) {
  GANTRY_CHECK_OK(Enter("recover sandbox " + request.id.str(), blob));
  auto sandbox = std::make_unique<FakeSandbox>(*this, request, context);
  GANTRY_CHECK_OK(sandbox->Recover());
  return sandbox;
}

void FakeBackend::StartServers() {
  const std::lock_guard lock(mutex_);
  servers_ = true;
}

void FakeBackend::UseContext(std::function<Status(ContainerContext&, bool)> use) {
  const std::lock_guard lock(mutex_);
  use_context_ = std::move(use);
}

Status FakeBackend::Use(ContainerContext& context, bool recovered) const {
  std::unique_lock lock(mutex_);
  const auto use = use_context_;
  lock.unlock();
  return use ? use(context, recovered) : Status();
}

void FakeBackend::SetStarted(const std::string& name) {
  const std::lock_guard lock(mutex_);
  started_.insert(name);
}

bool FakeBackend::HasStarted(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return started_.contains(name);
}

bool FakeBackend::HasServers() const {
  const std::lock_guard lock(mutex_);
  return servers_;
}

std::vector<std::string> FakeBackend::Calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

size_t FakeBackend::Count(const std::string& call) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(calls_, call));
}

std::chrono::milliseconds FakeBackend::LeftFor(const std::string& call) const {
  const std::lock_guard lock(mutex_);
  const auto found = left_.find(call);
  return found == left_.end() ? std::chrono::milliseconds(-1) : found->second;
}

void FakeBackend::FailNext(const std::string& call, Error error) {
  const std::lock_guard lock(mutex_);
  fail_[call] = std::move(error);
}

void FakeBackend::Hold(const std::string& call) {
  const std::lock_guard lock(mutex_);
  held_.insert(call);
}

void FakeBackend::Release(const std::string& call) {
  const std::lock_guard lock(mutex_);
  held_.erase(call);
  changed_.notify_all();
}

bool FakeBackend::Held(const std::string& call) const {
  const std::lock_guard lock(mutex_);
  return waiting_.contains(call);
}

void FakeBackend::ThrowNext(const std::string& call) {
  const std::lock_guard lock(mutex_);
  throw_.insert(call);
}

void FakeBackend::LeaveOut(const std::string& verb) {
  const std::lock_guard lock(mutex_);
  left_out_.insert(verb);
}

void FakeBackend::BindTo(const std::string& name, HostPid pid) {
  const std::lock_guard lock(mutex_);
  bind_[name] = pid;
}

void FakeBackend::GiveConsole(const std::string& name, UniqueFd master, ConsoleKind kind) {
  const std::lock_guard lock(mutex_);
  consoles_[name] = {std::move(master), kind};
}

void FakeBackend::SetProcesses(std::vector<ProcessInfo> processes) {
  const std::lock_guard lock(mutex_);
  processes_ = std::move(processes);
}

bool FakeBackend::End(const std::string& name, uint32_t status) {
  const std::lock_guard lock(mutex_);
  if (const auto pod = pods_.extract(name)) {
    pod.mapped()->Exited({status, kEndedAt});
    return true;
  }
  const auto found = running_.find(name);
  if (found == running_.end()) {
    return false;
  }
  found->second->Exited({status, kEndedAt});
  running_.erase(found);
  return true;
}

void FakeBackend::EndDuring(const std::string& call, const std::string& name, uint32_t status) {
  const std::lock_guard lock(mutex_);
  end_during_[call] = {name, status};
}

void FakeBackend::SetEnded(const std::string& name, uint32_t status) {
  const std::lock_guard lock(mutex_);
  ended_[name] = status;
}

void FakeBackend::SaveState(const std::string& sandbox, const std::string& container) {
  const std::lock_guard lock(mutex_);
  sandbox_state_ = sandbox;
  container_state_ = container;
}

void FakeBackend::EndAll() {
  const std::lock_guard lock(mutex_);
  held_.clear();
  changed_.notify_all();
  for (const auto& [name, context] : std::exchange(running_, {})) {
    context->Exited({137, kEndedAt});
  }
  for (const auto& [name, context] : std::exchange(pods_, {})) {
    context->Exited({137, kEndedAt});
  }
}

Status FakeBackend::PodUp(const std::string& name, SandboxContext& context, bool recovered) {
  std::unique_lock lock(mutex_);
  if (const auto host = bind_.find(name); host != bind_.end()) {
    const HostPid pid = host->second;
    lock.unlock();
    GANTRY_TRY(auto process, context.Adopt(pid));
    return context.Bind(std::move(process));
  }
  if (const auto ended = ended_.find(name); recovered && ended != ended_.end()) {
    context.Exited({ended->second, kEndedAt});
    return {};
  }
  pods_[name] = &context;
  const HostPid pid{next_pid_++};
  lock.unlock();
  if (!recovered) {
    context.SetPid(pid);
  }
  return {};
}

void FakeBackend::Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) {
  std::unique_lock lock(mutex_);
  const auto attached = attached_;
  lock.unlock();
  if (attached) {
    attached(context, handlers);
  }
}

void FakeBackend::WhenAttached(
    std::function<void(SandboxContext&, const std::vector<BackendHandler>&)> attached) {
  const std::lock_guard lock(mutex_);
  attached_ = std::move(attached);
}

Status FakeBackend::Enter(const std::string& call, const std::string& arguments) {
  std::unique_lock lock(mutex_);
  calls_.push_back(arguments.empty() ? call : call + " " + arguments);
  left_[call] = backend::CallDeadline::Left();
  if (held_.contains(call)) {
    const auto here = waiting_.insert(call);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return !held_.contains(call); });
    waiting_.erase(here);
  }
  if (const auto end = end_during_.extract(call)) {
    const auto [name, status] = end.mapped();
    lock.unlock();
    EXPECT_TRUE(End(name, status)) << name;
    lock.lock();
  }
  if (throw_.erase(call) > 0) {
    throw std::runtime_error("out of luck");
  }
  if (left_out_.contains(call.substr(0, call.find(' ')))) {
    return Fail(Code::kUnimplemented, "{}: left out", call);
  }
  if (auto fail = fail_.extract(call)) {
    return std::unexpected(std::move(fail.mapped()));
  }
  return {};
}

void FakeBackend::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  running_.erase(name);
  pods_.erase(name);
}

Status FakeBackend::ComeUp(const std::string& name, ProcessContext& context,
                           SandboxContext& sandbox, bool recovered) {
  std::unique_lock lock(mutex_);
  if (const auto use = use_process_) {
    lock.unlock();
    GANTRY_CHECK_OK(use(context, recovered));
    lock.lock();
  }
  if (const auto host = bind_.find(name); host != bind_.end()) {
    const HostPid pid = host->second;
    lock.unlock();
    GANTRY_TRY(auto process, sandbox.Adopt(pid));
    return context.Bind(std::move(process));
  }
  const HostPid pid{next_pid_++};
  if (const auto ended = ended_.find(name); recovered && ended != ended_.end()) {
    context.Exited({ended->second, kEndedAt});
    return {};
  }
  running_[name] = &context;
  auto console = consoles_.extract(name);
  lock.unlock();
  if (!recovered) {
    context.SetPid(pid);
  }
  return console ? context.AttachConsole(std::move(console.mapped().first), console.mapped().second)
                 : Status();
}

void FakeBackend::UseProcess(std::function<Status(ProcessContext&, bool)> use) {
  const std::lock_guard lock(mutex_);
  use_process_ = std::move(use);
}

std::string FakeBackend::StateFor(bool sandbox) const {
  const std::lock_guard lock(mutex_);
  return sandbox ? sandbox_state_ : container_state_;
}

std::vector<ProcessInfo> FakeBackend::Processes() const {
  const std::lock_guard lock(mutex_);
  return processes_;
}

void FakeBackend::Destroyed(const std::string& name, int calls_under_way) {
  EXPECT_EQ(calls_under_way, 0) << name << " was destroyed during a call of it";
}

}  // namespace gantry::test
