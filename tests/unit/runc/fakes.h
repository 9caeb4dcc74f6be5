// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to a backend, for the runc backend's tests: processes are
// started directly and are children of the test, which is a subreaper as the
// keeper is. One thread only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/sandbox.h>

namespace gantry::runc {

/// A directory below /tmp, removed with all in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void MakeDir(const std::string& path);
void Write(const std::string& path, const std::string& text, int mode = 0644);
/// The file's text; "(none)" where there is no such file.
std::string Slurp(const std::string& path);
bool IsThere(const std::string& path);

/// Reads until the end of the stream or 10 s.
std::string ReadAll(const UniqueFd& fd);
/// Reads until `wanted` was seen, the end or 10 s.
std::string ReadUntil(const UniqueFd& fd, const std::string& wanted);

/// The two ends of a pipe, CLOEXEC.
struct TestPipe {
  TestPipe();
  UniqueFd read_end;
  UniqueFd write_end;
};

/// A child of the test.
class FakeHostProcess : public HostProcess {
 public:
  explicit FakeHostProcess(int32_t pid);
  ~FakeHostProcess() override;

  HostPid pid() const override { return pid_; }

  uint64_t start_time() const override { return start_time_; }

  Status Signal(int signal) override;
  std::optional<WaitStatus> Ended() const override;
  Result<WaitStatus> Wait(std::chrono::milliseconds limit) override;

 private:
  HostPid pid_;
  uint64_t start_time_ = 0;
  UniqueFd pidfd_;
  mutable std::optional<WaitStatus> ended_;
};

/// A child that runs `sh -c SCRIPT`.
std::shared_ptr<FakeHostProcess> RunShell(const std::string& script);

class FakeSandboxContext : public SandboxContext {
 public:
  FakeSandboxContext();

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override;
  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;

  Status Bind(std::shared_ptr<HostProcess> process) override {
    bound = std::move(process);
    return {};
  }

  void SetPid(HostPid) override {}

  void Exited(ExitStatus status) override { exited = status; }

  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override;
  Status Store(std::string_view name, const UniqueFd& fd) override;
  Result<UniqueFd> Take(std::string_view name) override;

  void Drop(std::string_view name) override {
    if (const auto found = stored.find(name); found != stored.end()) {
      stored.erase(found);
    }
  }

  Status Save(std::string text) override {
    blob = std::move(text);
    return {};
  }

  void Log(LogLevel, std::string_view message) override { log.emplace_back(message); }

  void Count(std::string_view, uint64_t) override {}

  std::chrono::milliseconds TimeLeft() const override { return time_left; }

  /// The sub-commands that have been run, in order.
  std::vector<std::string> verbs() const;

  /// What the sandbox is bound to, how it ended, what it saved.
  std::shared_ptr<HostProcess> bound;
  std::optional<ExitStatus> exited;
  std::string blob;
  std::map<std::string, UniqueFd, std::less<>> stored;
  std::vector<std::vector<std::string>> spawned;
  std::vector<std::vector<std::string>> environments;
  std::vector<std::string> log;
  /// What the program of each was that came open; empty: by its path.
  std::vector<std::string> programs;
  /// No program may be executed that comes open.
  bool refuse_programs = false;
  bool refuse_all = false;
  std::chrono::milliseconds time_left = std::chrono::milliseconds::max();
  std::map<std::string, std::shared_ptr<HostProcess>, std::less<>> tags;

 private:
  std::map<int32_t, std::shared_ptr<FakeHostProcess>> processes_;
};

class FakeProcessContext : public ProcessContext {
 public:
  explicit FakeProcessContext(const std::string& container, const std::string& exec = "");

  const ContainerId& container() const override { return container_; }

  const ExecId& exec() const override { return exec_; }

  Result<Stdio> TakeStdio() override { return std::move(stdio); }

  Status Bind(std::shared_ptr<HostProcess> process) override;

  void SetPid(HostPid) override {}

  void Exited(ExitStatus status) override { exited = status; }

  Result<UniqueFd> OpenConsole(ConsoleKind) override {
    return Fail(Code::kUnimplemented, "open a console: the OCI runtime makes it");
  }

  Status AttachConsole(UniqueFd master, ConsoleKind kind) override;
  Status AttachStream(Stream stream, UniqueFd fd) override;

  Status Save(std::string) override { return {}; }

  Stdio stdio;
  std::shared_ptr<HostProcess> bound;
  std::optional<ExitStatus> exited;
  UniqueFd console;
  bool refuse_bind = false;

 private:
  ContainerId container_;
  ExecId exec_;
};

class FakeContainerContext : public ContainerContext {
 public:
  explicit FakeContainerContext(const std::string& id) : process(id) {}

  ProcessContext& init() override { return process; }

  void UseStateDirs(std::vector<std::string> dirs) override { state_dirs = std::move(dirs); }

  std::vector<std::string> state_dirs;

  Result<InsideHooks> BeginHooks() override { return InsideHooks(); }

  Status RunHooks(HookPoint, HostPid) override { return {}; }

  void UseCleanup(HostCommand command) override { cleanup = std::move(command); }

  std::optional<HostCommand> cleanup;

  Status UseCgroupsOf(const HostProcess& host) override {
    cgroups_of = host.pid();
    return {};
  }

  Result<std::vector<std::string>> MakeCgroups() override { return std::vector<std::string>(); }

  void OutOfMemory() override {}

  Status Save(std::string text) override {
    blob = std::move(text);
    return {};
  }

  FakeProcessContext process;
  HostPid cgroups_of;
  std::string blob;
};

}  // namespace gantry::runc
