// SPDX-License-Identifier: Apache-2.0
//
// What is on record of a machine cannot be read any more: what runs is found by its tags, and what
// lies about by its names, and nothing is left.
#include "plugins/vmm/pod/node_pod_machine.h"

#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/machine/config.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/storage/virtiofsd.h"
#include "tests/unit/vmm/machine/machine_rig.h"

namespace gantry::vmm {
namespace {

/// As the machine saves it.
struct Halves {
  std::string network{};
  std::string machine{};

  void Each(this auto& self, auto&& field) {
    field(1, self.network);
    field(2, self.machine);
  }
};

class NodePodMachineTest : public MachineRig {
 protected:
  std::unique_ptr<NodePodMachine> Make() {
    SandboxRequest request;
    request.id = SandboxId::Parse("pod-1").value();
    request.ns = Namespace::Parse("k8s.io").value();
    return std::make_unique<NodePodMachine>(request, context_, Options(), means_);
  }

  VmmOptions Options() const {
    VmmOptions options = Request().options;
    options.directory = base();
    if (!virtiofsd_.empty()) {
      options.storage.virtiofsd = virtiofsd_;
    }
    return options;
  }

  std::string Directory() const { return SandboxDirectory(Options(), "k8s.io", "pod-1"); }

  std::string StartAndSave() {
    agent_ = std::make_unique<AgentDouble>(Directory() + "/vm/s/v_1025");
    auto machine = Make();
    const Status started = machine->Start({}, {}, Soon());
    EXPECT_TRUE(started) << started.error().message;
    return started ? machine->Save() : std::string();
  }

  /// Empty: the real one.
  std::string virtiofsd_;

  void ExpectEndedBy(const std::string& saved) {
    EXPECT_GT(context_.Alive(), 0U);
    context_.RestartEngine();
    auto machine = Make();
    const Status recovered = machine->Recover({}, saved, {}, Soon());
    ASSERT_FALSE(recovered);
    EXPECT_EQ(recovered.error().code, Code::kNotFound);
    EXPECT_EQ(context_.Alive(), 0U);
    EXPECT_FALSE(mount::IsMountPoint(Directory() + "/vm").value_or(true));
    EXPECT_FALSE(Exists(Directory()));
    const auto users = ListDirectory(base() + "/users");
    EXPECT_TRUE(users && users->empty()) << "a user is left";
    EXPECT_TRUE(machine->Shutdown({})) << "there is none, and that is no failure";
  }
};

TEST_F(NodePodMachineTest, WhoseRecordIsNoneIsEnded) {
  StartAndSave();
  ExpectEndedBy("\xff\xff\xff");
}

TEST_F(NodePodMachineTest, WhoseNetworkIsNotOnRecordIsEnded) {
  auto saved = DecodeProto<Halves>(StartAndSave());
  ASSERT_TRUE(saved);
  saved->network = "{";
  ExpectEndedBy(EncodeProto(*saved));
}

TEST_F(NodePodMachineTest, WhoseVmIsNotOnRecordIsEnded) {
  auto saved = DecodeProto<Halves>(StartAndSave());
  ASSERT_TRUE(saved);
  saved->machine = "\xff\xff\xff";
  ExpectEndedBy(EncodeProto(*saved));
}

TEST_F(NodePodMachineTest, WhoseFilesCannotBeTakenUpIsEnded) {
  const std::string saved = StartAndSave();
  // More than it reads.
  constexpr int kRecords = 4097;
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_EQ(::mkdir((Directory() + "/storage/" + std::to_string(i)).c_str(), 0700), 0);
  }
  ExpectEndedBy(saved);
}

TEST_F(NodePodMachineTest, WhoseVmmHasNoDriverAnyMoreIsEnded) {
  const std::string saved = StartAndSave();
  means_.make_hypervisor = [](VmConfig, const HypervisorRequest&) {
    return Fail(Code::kFailedPrecondition, "there is no such VMM");
  };
  ExpectEndedBy(saved);
}

TEST_F(NodePodMachineTest, WhoseRecordWasNeverWrittenIsEnded) {
  StartAndSave();
  ExpectEndedBy("");
}

/// One that has files to show.
class FilesVm : public ShellVm {
 public:
  using ShellVm::ShellVm;

  Traits traits() const override { return {.file_systems = true, .cpus = true, .memory = true}; }
};

// The engine was killed before its start was on record: the core kills what was bound, and asks for
// the start once more. What serves the first one's files must not end during that.
TEST_F(NodePodMachineTest, StartsAnewWhereItsStartWasUndone) {
  ASSERT_TRUE(WriteFile(folder_.path() + "/virtiofsd", "#!/bin/sh\nexec sleep 1000\n", 0755));
  virtiofsd_ = folder_.path() + "/virtiofsd";
  means_.make_hypervisor = [this](VmConfig config, const HypervisorRequest&) {
    return Result<std::unique_ptr<Hypervisor>>(
        std::make_unique<FilesVm>(std::move(config), script_));
  };
  const std::string saved = StartAndSave();
  const size_t alive = context_.Alive();
  context_.RestartEngine();
  auto machine = Make();
  ASSERT_TRUE(machine->Recover({}, saved, {}, Soon()));
  const auto vmm = machine->guest().process();
  ASSERT_TRUE(vmm->Signal(SIGKILL));
  ASSERT_TRUE(vmm->Wait(std::chrono::seconds(60)));
  const auto files = context_.SpawnedUnder(Virtiofsd::kTag);
  ASSERT_TRUE(files);
  ASSERT_FALSE(files->Ended());
  context_.on_spawn = [&files](const SpawnRequest&) {
    EXPECT_TRUE(files->Ended()) << "its end would be taken for the next one's";
    return Status();
  };
  agent_ = std::make_unique<AgentDouble>(Directory() + "/vm/s/v_1025");
  const Status started = machine->Start({}, {}, Soon());
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_FALSE(machine->ended());
  EXPECT_EQ(context_.Alive(), alive);
  EXPECT_TRUE(machine->Shutdown({}));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_FALSE(Exists(Directory()));
}

}  // namespace
}  // namespace gantry::vmm
