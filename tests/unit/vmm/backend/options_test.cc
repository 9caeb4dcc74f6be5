// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(VmmOptionsOf, NothingAreTheDefaults) {
  const auto options = ParseOptions("", VmmOptions(), nullptr);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->vmm, Vmm::kQemu);
  EXPECT_EQ(options->accelerator, AcceleratorChoice::kAuto);
  EXPECT_EQ(VmmProgram(*options), "/usr/bin/qemu-system-x86_64");
  EXPECT_GT(options->users, 0U) << "VMMs are strangers to each other";
  EXPECT_TRUE(options->own_root) << "and to the node";
}

TEST(VmmOptionsOf, EachKeySetsWhatItSays) {
  const auto options = ParseOptions(
      R"({"vmm":"qemu","vmm_path":"/opt/qemu","machine":"microvm","accelerator":"tcg",
          "kernel":"/k","initrd":"/i","cmdline":"a=b","boot_timeout_ms":1000,"cpus":2,
          "memory_mib":128,"max_cpus":4,"max_memory_mib":512,"balloon":false,"hotplug_ports":3,
          "virtiofsd":"/v","virtiofs_cache":"never","root_fs":"block","writable_layer_mib":64,"layers_directory":"/l","first_user":1000,
          "users":5,"own_root":false,"directory":"/run/x"})",
      VmmOptions(), nullptr);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(VmmProgram(*options), "/opt/qemu");
  EXPECT_EQ(options->machine, QemuMachine::kMicrovm);
  EXPECT_EQ(options->accelerator, AcceleratorChoice::kTcg);
  EXPECT_EQ(options->kernel + options->initrd + options->cmdline, "/k/ia=b");
  EXPECT_EQ(options->boot_timeout.count(), 1000);
  EXPECT_EQ(options->cpus + options->max_cpus, 6U);
  EXPECT_EQ(options->memory_mib + options->max_memory_mib, 640U);
  EXPECT_FALSE(options->balloon);
  EXPECT_EQ(options->hotplug_ports, 3U);
  EXPECT_EQ(options->storage.virtiofsd + options->storage.cache, "/vnever");
  EXPECT_EQ(options->storage.writable_layer_mib, 64U);
  EXPECT_EQ(options->storage.layers_directory, "/l");
  EXPECT_TRUE(options->storage.block_roots);
  EXPECT_FALSE(options->storage.virtiofs_roots);
  EXPECT_EQ(options->first_user + options->users, 1005U);
  EXPECT_FALSE(options->own_root);
  EXPECT_EQ(options->directory, "/run/x");
}

// A VMM in a root of its own finds nothing by a way that leads back.
TEST(VmmOptionsOf, ADirectoryIsNamedWithoutAWayBack) {
  const auto options = ParseOptions(R"({"directory":"/run/./x/../y"})", VmmOptions(), nullptr);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->directory, "/run/y");
}

TEST(VmmOptionsOf, ARequestGoesOnTopOfTheHandlers) {
  const VmmOptions handler = {.kernel = "/k", .cpus = 3};
  std::vector<std::string> unknown;
  const auto options = ParseOptions(R"({"cpus":5,"later":1})", handler, &unknown);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->kernel, "/k");
  EXPECT_EQ(options->cpus, 5U);
  EXPECT_THAT(unknown, ElementsAre("later"));
}

// What a program of the handler's own can is for whoever names it to say.
TEST(VmmOptionsOf, AProgramOfOnesOwnMayTranslate) {
  EXPECT_TRUE(ParseOptions(R"({"vmm":"firecracker","accelerator":"tcg","vmm_path":"/opt/fc"})",
                           VmmOptions(), nullptr));
}

struct Wrong {
  const char* json;
  const char* key;
  const char* words;
};

class WrongVmmOption : public testing::TestWithParam<Wrong> {};

TEST_P(WrongVmmOption, IsRefusedByItsKey) {
  const auto options = ParseOptions(GetParam().json, VmmOptions(), nullptr);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  EXPECT_THAT(options.error().message, AllOf(HasSubstr(std::string("'") + GetParam().key + "'"),
                                             HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongVmmOption,
    testing::Values(
        Wrong{R"({"vmm":"xen"})", "vmm", "qemu, cloud-hypervisor, firecracker"},
        Wrong{R"({"vmm":7})", "vmm", "string"}, Wrong{R"({"machine":"pc"})", "machine", "q35"},
        Wrong{R"({"accelerator":"hvf"})", "accelerator", "auto, kvm, tcg"},
        Wrong{R"({"vmm":"firecracker","accelerator":"tcg"})", "accelerator", "QEMU's alone"},
        Wrong{R"({"kernel":"vmlinuz"})", "kernel", "no absolute path"},
        Wrong{R"({"cmdline":"a\nb"})", "cmdline", "one line"},
        Wrong{R"({"cpus":0})", "cpus", "from 1"}, Wrong{R"({"cpus":256})", "cpus", "to 255"},
        Wrong{R"({"cpus":4,"max_cpus":2})", "max_cpus", "less than"},
        Wrong{R"({"memory_mib":32})", "memory_mib", "from 64"},
        Wrong{R"({"memory_mib":512,"max_memory_mib":256})", "max_memory_mib", "less than"},
        Wrong{R"({"hotplug_ports":65})", "hotplug_ports", "to 64"},
        Wrong{R"({"template":65})", "template", "to 64"},
        Wrong{R"({"template":1,"vmm":"firecracker"})", "template", "QEMU's alone"},
        Wrong{R"({"template":1,"hotplug_ports":61})", "hotplug_ports", "at most 60"},
        Wrong{R"({"virtiofs_cache":"much"})", "virtiofs_cache", "auto, metadata"},
        Wrong{R"({"root_fs":"nfs"})", "root_fs", "auto, block"},
        Wrong{R"({"first_user":0})", "first_user", "from 1"},
        Wrong{R"({"directory":"/run/a-name-that-is-too-long-for-the-sockets-that-lie-below-it"})",
              "directory", "sockets"},
        Wrong{R"({"kernle":"/k"})", "kernle", "no such key"}));

}  // namespace
}  // namespace gantry::vmm
