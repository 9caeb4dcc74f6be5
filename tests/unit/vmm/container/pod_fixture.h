// SPDX-License-Identifier: Apache-2.0
//
// A pod whose guest is the real agent in a child of the test's, and whose machine is nothing but
// that and a process that stands for it. The engine can be restarted, and the machine end.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>
#include <gantry/testing/host_process.h>
#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>

#include "plugins/vmm/container/container.h"
#include "plugins/vmm/container/pod.h"
#include "plugins/vmm/container/pod_machine.h"
#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {

/// Gives the guest the bundle as it is, since both see the same files.
class TestStorage : public Storage {
 public:
  std::vector<FileSystem> file_systems() const override { return {}; }

  Result<ContainerStorage> Add(const ContainerRequest& request, const oci::Spec& spec) override;
  protocol::Detach DetachOf(const ContainerId& id) override;
  std::vector<std::string> DisksOf(const ContainerId& id) const override;
  Status Remove(const ContainerId& id) override;

  Status Shutdown() override { return {}; }

  /// To be set by the test: what a container brings.
  std::vector<Disk> disks;
  std::vector<protocol::GuestMount> mounts;
  std::optional<Error> refuse;

  /// By container, what it has.
  std::map<std::string, std::vector<std::string>> added;
};

/// What outlives an engine.
struct TestVm {
  std::unique_ptr<Host> host;
  std::shared_ptr<FakeHostProcess> vmm;
  TestStorage storage;
  std::map<std::string, Limits> rooms;
  std::vector<std::string> disks;
  std::optional<PodMachineRequest> started;
  /// What it was last looked for with.
  std::optional<PodMachineRequest> recovered;
  std::optional<Error> ended;
  int shutdowns = 0;
  /// The agent answers nothing.
  bool silent = false;
  /// What it says of a container that it has made.
  std::vector<std::string> warnings;
  /// So often somebody waited for it all the same.
  int waited = 0;
  std::optional<Error> refuse_start;
  std::optional<Error> refuse_room;
};

class TestMachine : public PodMachine, public GuestCalls {
 public:
  explicit TestMachine(TestVm& vm) : vm_(vm) {}

  ~TestMachine() override { vm_.host->Hear({}); }

  Status Start(PodMachineRequest request, PodMachineEvents events, Deadline deadline) override;
  Status Recover(const PodMachineRequest& request, const std::string& saved,
                 PodMachineEvents events, Deadline deadline) override;

  /// No text, as a machine's own is none.
  std::string Save() const override { return {'\xff', '\0', '\x80', '"'}; }

  GuestCalls& guest() override { return *this; }

  Storage& storage() override { return vm_.storage; }

  std::optional<Error> ended() const override { return vm_.ended; }

  std::map<std::string, std::string> Describe() const override { return {{"vmm", "test"}}; }

  Status AddDisk(const Disk& disk, Deadline deadline) override;
  Status RemoveDisk(const std::string& serial, Deadline deadline) override;
  Status MakeRoom(const std::string& container, const Limits& limits, Deadline deadline) override;
  void KnowRoom(const std::string& container, const Limits& limits) override;
  Status GiveRoomBack(const std::string& container, Deadline deadline) override;
  Status Shutdown(std::chrono::milliseconds limit) override;

  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline) override;

  Status PostBytes(protocol::Kind kind, std::string body,
                   std::function<void(Result<std::string> answer)> answered) override;

  StreamListener& streams() override { return vm_.host->streams(); }

  std::shared_ptr<HostProcess> process() const override { return vm_.vmm; }

  /// As when the VMM was killed.
  void End(const std::string& why);

  void Reconnect() { events_.reconnected(); }

 private:
  void Listen(PodMachineEvents events);

  TestVm& vm_;
  PodMachineEvents events_;
};

/// A container's context whose words can be waited for.
class TestContext {
 public:
  explicit TestContext(const std::string& id);

  /// Until it has been told; which exit was. 999: none.
  uint32_t WaitForExit();
  bool WaitFor(const std::string& word);

  std::vector<std::string> words() const { return fake.events.words(); }

  FakeContainerContext fake;

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::vector<std::string> words_;
};

/// The same of an exec.
class TestExecContext : public FakeProcessContext {
 public:
  using FakeProcessContext::FakeProcessContext;

  void Exited(ExitStatus status) override;
  uint32_t WaitForExit();

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<uint32_t> exit_;
};

/// With the namespaces that a container of a pod has.
container::Config InPod(container::Config config);

class PodTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  ContainerRequest RequestOf(const container::Config& config, bool terminal = false);
  static ExecRequest ExecOf(const std::string& id, const container::Config& config,
                            bool terminal = false);

  /// Made, and started too.
  std::unique_ptr<VmmContainer> Create(const ContainerRequest& request, TestContext& context);
  std::unique_ptr<VmmContainer> Run(const ContainerRequest& request, TestContext& context);

  /// A new engine: the containers were destroyed before.
  void RestartEngine();

  std::vector<protocol::ContainerReport> Listed();

  FakeSandboxContext sandbox_;
  container::Bundle bundle_;
  TestVm vm_;
  TestMachine* machine_ = nullptr;
  std::shared_ptr<Pod> pod_;
};

}  // namespace gantry::vmm
