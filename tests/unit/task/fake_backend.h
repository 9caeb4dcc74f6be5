// SPDX-License-Identifier: Apache-2.0
//
// A backend that only remembers what it was asked. Its processes are none of
// the host's, unless the test says otherwise; the test ends them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gantry/backend.h>

namespace gantry::test {

class FakeContainer;

/// Thread: any; its objects call it on workers, the test on its own.
class FakeBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {"fake", "1", false, {}}; }

  void Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) override;

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

  // The test's side. A process is named "c1", an exec of it "c1/e1"; a call
  // "start c1", "kill c1/e1 9".

  /// All calls so far, in order.
  std::vector<std::string> Calls() const;
  /// How many calls of that name there were.
  size_t Count(const std::string& call) const;
  /// What the last call of that name was told it had left (`TimeLeft`).
  std::chrono::milliseconds LeftFor(const std::string& call) const;
  /// The next call of that name fails. "start c1" and so on, without arguments behind it.
  void FailNext(const std::string& call, Error error);
  /// Calls of that name wait until `Release`, at most ten seconds.
  void Hold(const std::string& call);
  void Release(const std::string& call);
  /// A call of that name waits now.
  bool Held(const std::string& call) const;
  /// A call of that name throws.
  void ThrowNext(const std::string& call);
  /// Calls of that name are answered as one that the backend leaves out.
  void LeaveOut(const std::string& verb);
  /// `name` is bound to this process of the host, when it comes up.
  void BindTo(const std::string& name, HostPid pid);
  /// `name` gets this console when it comes up.
  void GiveConsole(const std::string& name, UniqueFd master, ConsoleKind kind);
  /// What `Processes` answers.
  void SetProcesses(std::vector<ProcessInfo> processes);
  /// Ends a process, or a pod ("sandbox p1"), as a backend says it. False: there is
  /// none.
  bool End(const std::string& name, uint32_t status);
  /// Ends it while `call` is under way, before it returns.
  void EndDuring(const std::string& call, const std::string& name, uint32_t status);
  /// Of a container whose Start took effect.
  void SetStarted(const std::string& name);
  /// How a recovered process ended; without, it runs.
  void SetEnded(const std::string& name, uint32_t status);
  /// What sandboxes save when they start, containers when they are created.
  void SaveState(const std::string& sandbox, const std::string& container);
  /// Sandboxes have a process, spawned as "server".
  void StartServers();
  /// What a container does with its context before it is there, and before it is there
  /// again: `recovered`.
  void UseContext(std::function<Status(ContainerContext&, bool recovered)> use);
  /// What a process does with its context when it comes up.
  void UseProcess(std::function<Status(ProcessContext&, bool recovered)> use);
  /// What each engine that loads it has it do.
  void WhenAttached(
      std::function<void(SandboxContext&, const std::vector<BackendHandler>&)> attached);
  void EndAll();

  // For its objects.
  Status Enter(const std::string& call, const std::string& arguments = "");
  Status PodUp(const std::string& name, SandboxContext& context, bool recovered);
  void Remove(const std::string& name);
  Status ComeUp(const std::string& name, ProcessContext& context, SandboxContext& sandbox,
                bool recovered);
  std::string StateFor(bool sandbox) const;
  std::vector<ProcessInfo> Processes() const;
  Status Use(ContainerContext& context, bool recovered) const;
  bool HasServers() const;
  bool HasStarted(const std::string& name) const;
  /// Objects that exist; "while in a call" is a failure of the test.
  void Destroyed(const std::string& name, int calls_under_way);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::map<std::string, std::chrono::milliseconds> left_;
  std::map<std::string, Error> fail_;
  std::set<std::string> throw_;
  std::set<std::string> held_;
  std::multiset<std::string> waiting_;
  std::set<std::string> left_out_;
  std::map<std::string, HostPid> bind_;
  std::map<std::string, std::pair<UniqueFd, ConsoleKind>> consoles_;
  std::map<std::string, ProcessContext*> running_;
  std::map<std::string, SandboxContext*> pods_;
  std::map<std::string, std::pair<std::string, uint32_t>> end_during_;
  std::set<std::string> started_;
  std::map<std::string, uint32_t> ended_;
  std::vector<ProcessInfo> processes_;
  std::function<Status(ContainerContext&, bool)> use_context_;
  std::function<Status(ProcessContext&, bool)> use_process_;
  std::function<void(SandboxContext&, const std::vector<BackendHandler>&)> attached_;
  bool servers_ = false;
  std::string sandbox_state_;
  std::string container_state_;
  int32_t next_pid_ = 4001;
};

}  // namespace gantry::test
