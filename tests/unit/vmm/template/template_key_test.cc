// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/template_key.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

class TemplateKeyTest : public testing::Test {
 protected:
  TemplateKeyTest() {
    for (std::string* path :
         {&request_.options.vmm_path, &request_.options.kernel, &request_.options.initrd}) {
      *path = folder_.path() + "/" + std::to_string(++files_);
      EXPECT_TRUE(WriteFile(*path, "x", 0755));
    }
    request_.id = "pod";
    request_.directory = "/run/gantry-vmm/pod";
  }

  std::string Key(Accelerator accelerator = Accelerator::kTcg) const {
    const auto key = TemplateKey(request_, accelerator);
    EXPECT_TRUE(key) << key.error().message;
    return key.value_or("");
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  int files_ = 0;
  MachineRequest request_;
};

TEST_F(TemplateKeyTest, IsTheSameForAllPods) {
  const std::string key = Key();
  request_.id = "another";
  request_.directory = "/run/gantry-vmm/another";
  request_.set_up.hostname = "another";
  request_.cgroups = {"/sys/fs/cgroup/another"};
  EXPECT_EQ(Key(), key);
}

TEST_F(TemplateKeyTest, DiffersWithAllThatAGuestIsMadeOf) {
  using Change = std::function<void(MachineRequest&)>;
  const std::vector<Change> changes = {
      [](auto& one) { one.options.machine = QemuMachine::kMicrovm; },
      [](auto& one) { one.options.cmdline = "quiet"; },
      [](auto& one) { one.options.hotplug_ports = 3; },
      [](auto& one) { one.options.balloon = false; },
      [](auto& one) { one.options.first_user = 7; },
      [](auto& one) { one.options.directory = "/run/other"; },
      [](auto& one) { one.size.cpus = 2; },
      [](auto& one) { one.size.memory_bytes *= 2; },
      [](auto& one) { one.size.max_memory_bytes *= 4; },
      [](auto& one) { ASSERT_TRUE(WriteFile(one.options.vmm_path, "newer", 0755)); },
      [](auto& one) { ASSERT_TRUE(WriteFile(one.options.kernel, "newer", 0755)); },
      [](auto& one) { ASSERT_TRUE(WriteFile(one.options.initrd, "newer", 0755)); }};
  std::string before = Key();
  EXPECT_NE(Key(Accelerator::kKvm), before);
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i](request_);
    const std::string after = Key();
    EXPECT_NE(after, before) << "change " << i;
    before = after;
  }
}

TEST_F(TemplateKeyTest, NeedsItsFiles) {
  request_.options.kernel = "/no/kernel";
  const auto key = TemplateKey(request_, Accelerator::kTcg);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(key.error().message, testing::HasSubstr("/no/kernel"));
}

TEST(Processor, IsWhatAGuestMayNotice) {
  const std::string text =
      "processor\t: 0\nvendor_id\t: V\nmodel name\t: M\nmicrocode\t: 0x1\ncpu MHz\t\t: 1.5\n"
      "flags\t\t: fpu tsc\n\nprocessor\t: 1\nvendor_id\t: W\n";
  EXPECT_EQ(ProcessorIn(text), "vendor_id: V;model name: M;microcode: 0x1;flags: fpu tsc;");
}

}  // namespace
}  // namespace gantry::vmm
