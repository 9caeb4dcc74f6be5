// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CloudHypervisorTest : public testing::Test {
 protected:
  Hypervisor& Make(VmConfig config) {
    vm_ = MakeCloudHypervisor(std::move(config), {.program = "/proc/self/exe",
                                                  .control_socket = folder_.path() + "/control"})
              .value();
    request_ = vm_->Describe().value();
    double_ = std::make_unique<test::CloudHypervisorDouble>(ListenerOf(request_));
    EXPECT_TRUE(vm_->Connect(Soon(), nullptr));
    return *vm_;
  }

  static Nic NicOf(const std::string& id) {
    Nic nic{.id = id, .mac = "52:54:00:12:34:56", .tap_name = {}};
    nic.tap = SomeFd();
    return nic;
  }

  static VmConfig Everything() {
    VmConfig config = SmallVm();
    config.cpus = {.boot = 1, .max = 2};
    config.memory.max_bytes = 512 * kMiB;
    config.balloon = true;
    config.disks.push_back({.serial = "root", .path = "/images/root", .read_only = true});
    config.file_systems.push_back({.tag = "share", .socket = "/run/fs.sock"});
    config.nics.push_back(NicOf("eth0"));
    config.vsock = Vsock{.vhost_user = {}, .vhost = {}, .uds = "/run/v.sock"};
    return config;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::unique_ptr<Hypervisor> vm_;
  SpawnRequest request_;
  std::unique_ptr<test::CloudHypervisorDouble> double_;
};

TEST_F(CloudHypervisorTest, SendsWhatIsExpected) {
  Hypervisor& vm = Make(Everything());
  EXPECT_THAT(request_.argv,
              ElementsAre("/proc/self/exe", "--api-socket", "fd=3", "--seccomp", "true"));
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  ASSERT_TRUE(vm.AddDisk({.serial = "d1", .path = "/images/d1"}, Soon()));
  ASSERT_TRUE(vm.AddNic(NicOf("eth1"), Soon()));
  ASSERT_TRUE(vm.AddFileSystem({.tag = "more", .socket = "/run/more.sock"}, Soon()));
  EXPECT_THAT(double_->Devices(), ElementsAre("disk-d1", "disk-root", "fs-more", "fs-share",
                                              "nic-eth0", "nic-eth1", "vsock"));
  EXPECT_EQ(double_->fds(), 2U);
  ASSERT_TRUE(vm.RemoveFileSystem("more", Soon()));
  ASSERT_TRUE(vm.RemoveNic("eth1", Soon()));
  ASSERT_TRUE(vm.RemoveDisk("d1", Soon()));
  ASSERT_TRUE(vm.SetCpus(2, Soon()));
  ASSERT_TRUE(vm.SetMemory(512 * kMiB, Soon()));
  ASSERT_TRUE(vm.SetBalloon(64 * kMiB, Soon()));
  ASSERT_TRUE(vm.GetSizes(Soon()));
  ASSERT_TRUE(vm.Pause(Soon()));
  ASSERT_TRUE(vm.TakeSnapshot({.directory = "/t"}, Soon()));
  ASSERT_TRUE(vm.Resume(Soon()));
  ASSERT_TRUE(vm.Stop(Soon()));
  ASSERT_TRUE(vm.Kill(Soon()));
  ExpectGolden("cloud-hypervisor.txt", Recorded(double_->server().Requests(), folder_.path()));
}

TEST_F(CloudHypervisorTest, RestoresAndThenAddsWhatASnapshotCannotHave) {
  VmConfig config = Everything();
  config.from = Snapshot{.directory = "/t"};
  Hypervisor& vm = Make(std::move(config));
  ASSERT_TRUE(vm.Configure(Soon()));
  const Status restored = vm.Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_THAT(double_->Devices(), ElementsAre("fs-share", "nic-eth0", "vsock"));
  ExpectGolden("cloud-hypervisor-restore.txt",
               Recorded(double_->server().Requests(), folder_.path()));
}

TEST_F(CloudHypervisorTest, TellsTheWholeChainOfCauses) {
  Hypervisor& vm = Make(SmallVm());
  const Status booted = vm.Boot(Soon());
  ASSERT_FALSE(booted);
  EXPECT_EQ(booted.error().code, Code::kNotFound);
  EXPECT_EQ(booted.error().message,
            "ask Cloud Hypervisor to 'PUT /api/v1/vm.boot': it answered 404: Error from API: VM is "
            "not created");
}

TEST_F(CloudHypervisorTest, SaysThatADeviceIsThere) {
  Hypervisor& vm = Make(Everything());
  ASSERT_TRUE(vm.Configure(Soon()));
  const auto added = vm.AddDisk({.serial = "root", .path = "/images/root"}, Soon());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::kAlreadyExists);
}

TEST_F(CloudHypervisorTest, SaysWhatItHasNot) {
  VmConfig config = SmallVm();
  config.memory = {.backing = MemoryBacking::kFile, .file = "/m"};
  EXPECT_EQ(MakeCloudHypervisor(std::move(config), {}).error().code, Code::kUnimplemented);
  Hypervisor& vm = Make(SmallVm());
  const Vsock vsock{.vhost_user = "/run/v.sock", .vhost = {}, .uds = {}};
  EXPECT_THAT(vm.AddVsock(vsock, Soon()).error().message,
              HasSubstr("Cloud Hypervisor cannot use another's vsock device"));
  const Nic named{.id = "e", .mac = "52:54:00:12:34:56", .tap = {}, .tap_name = "tap0"};
  EXPECT_EQ(vm.AddNic(named, Soon()).error().code, Code::kUnimplemented);
}

TEST_F(CloudHypervisorTest, TakesNoStateThatIsNone) {
  Hypervisor& vm = Make(SmallVm());
  ASSERT_TRUE(vm.Configure(Soon()));
  double_->server().FailNext("vm.info", test::RestFault::kBytes,
                             "HTTP/1.1 200 \r\nContent-Length: 13\r\n\r\n{\"state\":true}");
  EXPECT_FALSE(vm.GetStatus(Soon()));
  double_->server().FailNext("vm.info", test::RestFault::kBytes,
                             "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n[]");
  EXPECT_FALSE(vm.GetStatus(Soon()));
  double_->server().FailNext("vm.info", test::RestFault::kBytes,
                             "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n[]");
  EXPECT_EQ(vm.GetSizes(Soon()).error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace gantry::vmm
