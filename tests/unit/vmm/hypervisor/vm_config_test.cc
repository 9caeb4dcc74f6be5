// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/vm_config.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

/// What is said of a good VM after `change`.
std::string WhatIsWrongWith(const std::function<void(VmConfig&)>& change) {
  VmConfig config = SmallVm();
  change(config);
  const Status checked = CheckVmConfig(config);
  EXPECT_FALSE(checked);
  if (checked) {
    return {};
  }
  EXPECT_EQ(checked.error().code, Code::kInvalidArgument);
  return checked.error().message;
}

TEST(CheckVmConfig, TakesASmallVm) {
  const Status checked = CheckVmConfig(SmallVm());
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(CheckVmConfig, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.id = "a b"; }), HasSubstr("id 'a b'"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.id = std::string(65, 'a'); }),
              HasSubstr("1 to 64"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.kernel = "vmlinuz"; }),
              HasSubstr("kernel 'vmlinuz'"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.initrd = "/a\nb"; }), HasSubstr("initrd"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.console.clear(); }), HasSubstr("console"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.cmdline = std::string(2048, 'x'); }),
              HasSubstr("2048 bytes"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.hotplug_ports = 65; }),
              HasSubstr("at most 64"));
}

TEST(CheckVmConfig, NamesSizesThatAreWrong) {
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.cpus.boot = 0; }), HasSubstr("0 CPUs"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.cpus = {.boot = 4, .max = 2}; }),
              HasSubstr("4 CPUs"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.memory.bytes = kMiB; }),
              HasSubstr("at least 64 MiB"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.memory.max_bytes = 257 * kMiB; }),
              HasSubstr("whole 2 MiB"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) { vm.memory.backing = MemoryBacking::kFile; }),
              HasSubstr("memory file"));
}

TEST(CheckVmConfig, NamesDevicesThatAreWrong) {
  EXPECT_THAT(
      WhatIsWrongWith([](VmConfig& vm) { vm.disks.push_back({.serial = "a-b", .path = "/x"}); }),
      HasSubstr("a disk's serial 'a-b'"));
  EXPECT_THAT(
      WhatIsWrongWith([](VmConfig& vm) { vm.disks.push_back({.serial = "a", .path = "x"}); }),
      HasSubstr("a disk's path 'x'"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) {
                vm.nics.push_back({.id = "e", .mac = "52:54", .tap = {}, .tap_name = {}});
              }),
              HasSubstr("MAC address '52:54'"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) {
                vm.file_systems.push_back({.tag = "t", .socket = "/" + std::string(107, 's')});
              }),
              HasSubstr("at most 107 bytes, not 108"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) {
                vm.memory.backing = MemoryBacking::kPrivate;
                vm.file_systems.push_back({.tag = "t", .socket = "/s"});
              }),
              HasSubstr("private memory cannot be reached"));
  EXPECT_THAT(WhatIsWrongWith([](VmConfig& vm) {
                vm.vsock = Vsock{.cid = 2, .vhost_user = {}, .vhost = {}, .uds = {}};
              }),
              HasSubstr("the vsock address 2"));
}

}  // namespace
}  // namespace gantry::vmm
