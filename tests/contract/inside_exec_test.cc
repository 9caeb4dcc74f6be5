// SPDX-License-Identifier: Apache-2.0
//
// What an exec finds: it is in its container, with the rights that its own process object
// gives it, and never without what confines the container.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/contract/harness/inside.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::UnorderedElementsAre;

class InsideExec : public InsideTest {};

TEST_P(InsideExec, IsInTheRootOfItsContainer) {
  const Json scratch = {{"destination", "/scratch"}, {"type", "tmpfs"}, {"source", "tmpfs"}};
  const Box* box = Resident({{"mounts", MountsWith({scratch})}}, "echo of-the-init >/scratch/file");
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said =
      ExecSays(*box, "cat /scratch/file; echo of-the-exec >/scratch/more; ls -d /bin/busybox " +
                         node().root());
  std::filesystem::remove(node().rootfs() + "/scratch");
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(said->starts_with("of-the-init\n")) << *said;
  EXPECT_TRUE(Words(*said).contains("/bin/busybox")) << *said;
  EXPECT_FALSE(Words(*said).contains(node().root())) << "it sees the node's files: " << *said;
}

TEST_P(InsideExec, IsInTheNamespacesOfItsContainer) {
  const Box* box = Resident({{"hostname", "inside-it"}});
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said = ExecSays(
      *box, "hostname; cat /proc/1/cmdline; echo; for p in /proc/[0-9]*; do echo pid; done");
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(Words(*said).contains("inside-it")) << *said;
  EXPECT_TRUE(said->contains("sleep")) << "pid 1 is not the container's init: " << *said;
  size_t processes = 0;
  for (size_t at = 0; (at = said->find("pid\n", at)) != std::string::npos; ++at) {
    ++processes;
  }
  EXPECT_LE(processes, 3U) << "it sees processes that are not the container's: " << *said;
}

TEST_P(InsideExec, IsTheUserOfItsProcessObject) {
  const Box* box = Resident();
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said = ExecSays(*box, "id -u; id -g; for g in $(id -G); do echo group-$g; done",
                             {{"user", {{"uid", 1000}, {"gid", 1001}, {"additionalGids", {5}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said), UnorderedElementsAre("1000", "1001", "group-1001", "group-5"));
}

TEST_P(InsideExec, HasTheRestOfItsProcessObject) {
  const Box* box = Resident();
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said =
      ExecSays(*box, "pwd; echo $MINE; ulimit -Sn",
               {{"cwd", "/tmp"},
                {"env", {"PATH=/bin", "MINE=of-the-exec"}},
                {"rlimits", {{{"type", "RLIMIT_NOFILE"}, {"soft", 99}, {"hard", 99}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  if (!TheSetup().anybodys && !IsSupported(backend(), kLimitsOfExecs)) {
    EXPECT_TRUE(said->starts_with("/tmp\nof-the-exec\n")) << *said;
    EXPECT_FALSE(said->ends_with("\n99\n")) << "then the row can go";
    return;
  }
  EXPECT_EQ(*said, "/tmp\nof-the-exec\n99\n");
}

TEST_P(InsideExec, HasNoMoreCapabilitiesThanAreAskedFor) {
  const Json set = {"CAP_CHOWN", "CAP_KILL"};
  const Json sets = {{"bounding", set}, {"effective", set}, {"permitted", set}};
  const Box* box = Resident({{"process", {{"capabilities", sets}}}});
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto none = ExecSays(*box, kShowStatus);
  const auto same = ExecSays(*box, kShowStatus, {{"capabilities", sets}});
  if (!none || !same) {
    GTEST_SKIP() << refusal();
  }
  const uint64_t most = CapabilityMask({kChown, kKill});
  auto without = Fields(*none);
  auto with = Fields(*same);
  for (const char* name : {"CapEff", "CapPrm", "CapBnd"}) {
    EXPECT_EQ(MaskOf(without[name]) & ~most, 0U)
        << name << " of one that asks for none is " << without[name];
    EXPECT_EQ(MaskOf(with[name]), most) << name;
  }
}

TEST_P(InsideExec, IsFilteredByTheSeccompProfileOfItsContainer) {
  Json spec;
  spec["linux"]["seccomp"] = {
      {"defaultAction", "SCMP_ACT_ALLOW"},
      {"syscalls", {{{"names", {"mkdir", "mkdirat"}}, {"action", "SCMP_ACT_ERRNO"}}}}};
  const Box* box = Resident(spec);
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const std::string folder = "/tmp/" + Unique("made");
  const auto said = ExecSays(*box, "mkdir " + folder + " && echo made || echo refused");
  std::filesystem::remove(node().rootfs() + folder);
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(Words(*said).contains("refused")) << *said;
}

TEST_P(InsideExec, CannotGainPrivilegesThatItsProcessObjectForbids) {
  const Box* box = Resident();
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said = ExecSays(*box, kShowStatus, {{"noNewPrivileges", true}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  auto fields = Fields(*said);
  EXPECT_EQ(fields["NoNewPrivs"], "1");
}

TEST_P(InsideExec, HoldsNoDescriptorButItsStreams) {
  const Box* box = Resident();
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto said = ExecSays(*box, kDescriptors);
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said), UnorderedElementsAre("0", "1", "2"));
}

INSTANTIATE_CONTRACT(InsideExec);

}  // namespace
}  // namespace gantry::contract
