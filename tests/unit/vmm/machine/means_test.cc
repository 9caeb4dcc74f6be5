// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/means.h"

#include <gtest/gtest.h>

namespace gantry::vmm {
namespace {

TEST(TraitsOf, AreThoseOfTheOptions) {
  const MachineMeans means;
  const auto qemu = TraitsOf(means, {});
  ASSERT_TRUE(qemu) << qemu.error().message;
  EXPECT_TRUE(qemu->disks && qemu->nics && qemu->file_systems);
  EXPECT_FALSE(TraitsOf(means, {.hotplug_ports = 0})->disks);
  EXPECT_TRUE(TraitsOf(means, {.vmm = Vmm::kCloudHypervisor})->file_systems);
  const auto firecracker = TraitsOf(means, {.vmm = Vmm::kFirecracker});
  ASSERT_TRUE(firecracker);
  EXPECT_FALSE(firecracker->file_systems);
  EXPECT_TRUE(firecracker->tap_by_name);
}

}  // namespace
}  // namespace gantry::vmm
