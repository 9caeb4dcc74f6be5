// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/accelerator.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Acceleration, IsKvmWhereTheCanaryHasSungToItsEnd) {
  const Acceleration works = AccelerationOf(
      "open /dev/kvm\nmake a VM\nworks: API version 12, a guest ran\n", milliseconds(1));
  EXPECT_EQ(works.accelerator, Accelerator::kKvm);
  EXPECT_EQ(works.words, "KVM works (API version 12, a guest ran)");
}

TEST(Acceleration, SaysWhyItIsNot) {
  const Acceleration fails =
      AccelerationOf("open /dev/kvm\nfails: open /dev/kvm (errno   2)\n", milliseconds(1));
  EXPECT_EQ(fails.accelerator, Accelerator::kTcg);
  EXPECT_EQ(fails.words, "KVM is not used: open /dev/kvm (errno   2)");
}

TEST(Acceleration, SaysWhereItHung) {
  const Acceleration hung = AccelerationOf("make a VM\nrun an instruction\n", milliseconds(3000));
  EXPECT_EQ(hung.accelerator, Accelerator::kTcg);
  EXPECT_EQ(hung.words,
            "KVM is not used: a guest of one instruction did not end within 3000 ms; "
            "it was to run an instruction");
  EXPECT_EQ(AccelerationOf("", milliseconds(5)).words,
            "KVM is not used: a guest of one instruction did not end within 5 ms");
}

TEST(Acceleration, IsFoundOutByTheRealCanary) {
  // Whichever it is here: it is found out, and said.
  const Acceleration found = ChooseAccelerator({.canary = GANTRY_KVM_CANARY});
  EXPECT_THAT(found.words, AnyOf(StartsWith("KVM works ("), StartsWith("KVM is not used: ")));
  RecordProperty("acceleration", found.words);
}

TEST(Acceleration, GivesUpOnACanaryThatHangs) {
  const os::TempDir folder = os::TempDir::Create().value();
  const std::string program = folder.path() + "/hangs";
  ASSERT_TRUE(WriteFile(program, "#!/bin/sh\necho make a VM\nexec sleep 600\n", 0700));
  const Acceleration hung =
      ChooseAccelerator({.canary = program, .canary_limit = milliseconds(200)});
  EXPECT_EQ(hung.accelerator, Accelerator::kTcg);
  EXPECT_THAT(hung.words, HasSubstr("did not end within 200 ms"));
}

TEST(Acceleration, IsKvmOnlyWhereAKernelBootsInIt) {
  const os::TempDir folder = os::TempDir::Create().value();
  const auto program = [&](const std::string& name, const std::string& script) {
    const std::string path = folder.path() + "/" + name;
    EXPECT_TRUE(WriteFile(path, "#!/bin/sh\n" + script, 0700));
    return path;
  };
  KvmQuestion question{.canary = program("canary", "echo works: v\n"), .kernel = "/k"};
  question.qemu = program("boots", "echo '[0.1] Kernel panic - not syncing: no root'\n");
  const Acceleration works = ChooseAccelerator(question);
  EXPECT_EQ(works.accelerator, Accelerator::kKvm);
  EXPECT_EQ(works.words, "KVM works (v), and a kernel boots in it");
  question.qemu = program("aborts", "echo 'qemu: failed to set MSR 0x10a' >&2\nexit 134\n");
  const Acceleration aborts = ChooseAccelerator(question);
  EXPECT_EQ(aborts.accelerator, Accelerator::kTcg);
  EXPECT_THAT(aborts.words, HasSubstr("QEMU's last words: qemu: failed to set MSR 0x10a"));
  question.qemu = program("hangs", "exec sleep 600\n");
  question.boot_limit = milliseconds(200);
  EXPECT_THAT(ChooseAccelerator(question).words,
              HasSubstr("a kernel did not boot in it, which may take 200 ms"));
}

TEST(Acceleration, NamesACanaryThatCannotBeRun) {
  EXPECT_THAT(ChooseAccelerator({.canary = "/nowhere/canary"}).words,
              StartsWith("KVM is not used: its canary cannot be run: "));
}

TEST(TscKhz, IsReadWhereTheCounterTicksEvenly) {
  EXPECT_EQ(TscKhzIn("flags\t\t: fpu constant_tsc sse\ncpu MHz\t\t: 2596.140\n"), 2'596'140U);
  EXPECT_EQ(TscKhzIn("cpu MHz\t\t: 2596.140\nflags\t\t: fpu sse constant_tsc\n"), 2'596'140U);
  EXPECT_EQ(TscKhzIn("flags\t\t: fpu sse\ncpu MHz\t\t: 2596.140\n"), 0U);
  EXPECT_EQ(TscKhzIn("flags\t\t: constant_tsc\ncpu MHz\t\t: fast\n"), 0U);
  EXPECT_EQ(TscKhzIn(""), 0U);
}

}  // namespace
}  // namespace gantry::vmm
