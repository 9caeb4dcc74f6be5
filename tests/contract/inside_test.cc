// SPDX-License-Identifier: Apache-2.0
//
// What a container's program finds is what its spec says: who it is, what it may do, where it
// is, and what it can see and write. A backend that cannot give a part refuses the container.
#include "tests/contract/harness/inside.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

Json Bind(const std::string& source, const char* destination, const char* mode) {
  return {{"destination", destination},
          {"type", "bind"},
          {"source", source},
          {"options", {"rbind", mode}}};
}

/// A folder or file of this rule's in the root that all containers have.
class OnRoot {
 public:
  explicit OnRoot(const std::string& path, const char* text = nullptr) : path_(path) {
    if (text == nullptr) {
      fs::create_directories(path_);
    } else {
      std::ofstream(path_) << text;
    }
    fs::permissions(path_, static_cast<fs::perms>(text == nullptr ? 0777 : 0666));
  }

  OnRoot(const OnRoot&) = delete;
  OnRoot& operator=(const OnRoot&) = delete;

  ~OnRoot() {
    std::error_code error;
    fs::remove_all(path_, error);
  }

 private:
  const std::string path_;
};

class Inside : public InsideTest {};

TEST_P(Inside, IsItsUserAndItsGroups) {
  const auto said =
      Says("id -u; id -g; for g in $(id -G); do echo group-$g; done; umask",
           {{"process",
             {{"user",
               {{"uid", 1000}, {"gid", 1001}, {"umask", 027}, {"additionalGids", {5, 2000}}}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said),
              UnorderedElementsAre("1000", "1001", "group-1001", "group-5", "group-2000", "0027"));
}

TEST_P(Inside, OfRootHasTheCapabilitiesOfItsSpecAndNoOther) {
  const Json set = {"CAP_CHOWN", "CAP_KILL"};
  const auto said =
      Says(kShowStatus,
           {{"process",
             {{"capabilities", {{"bounding", set}, {"effective", set}, {"permitted", set}}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  auto fields = Fields(*said);
  for (const char* name : {"CapBnd", "CapEff", "CapPrm"}) {
    EXPECT_EQ(MaskOf(fields[name]), CapabilityMask({kChown, kKill})) << name;
  }
  EXPECT_EQ(MaskOf(fields["CapInh"]), 0U);
}

TEST_P(Inside, OfAUserHasTheCapabilitiesOfItsSpecAndNoOther) {
  const Json own = {"CAP_KILL"};
  const auto said = Says(kShowStatus, {{"process",
                                        {{"user", {{"uid", 1000}, {"gid", 1000}}},
                                         {"capabilities",
                                          {{"bounding", {"CAP_KILL", "CAP_NET_BIND_SERVICE"}},
                                           {"effective", own},
                                           {"permitted", own},
                                           {"inheritable", own},
                                           {"ambient", own}}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  auto fields = Fields(*said);
  EXPECT_EQ(MaskOf(fields["CapBnd"]), CapabilityMask({kKill, kNetBindService}));
  EXPECT_EQ(MaskOf(fields["CapInh"]), CapabilityMask({kKill}));
  for (const char* name : {"CapAmb", "CapEff", "CapPrm"}) {
    EXPECT_EQ(MaskOf(fields[name]), CapabilityMask({kKill})) << name;
  }
}

TEST_P(Inside, IsFilteredByTheSeccompProfileOfItsSpec) {
  constexpr unsigned kErrno = 95;
  Json spec;
  spec["linux"]["seccomp"] = {
      {"defaultAction", "SCMP_ACT_ALLOW"},
      {"syscalls",
       {{{"names", {"mkdir", "mkdirat"}}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", kErrno}}}}};
  const auto said = Says("mkdir /tmp/" + Unique("made") + " && echo made || echo refused", spec);
  fs::remove(node().rootfs() + "/tmp/" + Unique("made"));
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(Words(*said).contains("refused")) << *said;
  EXPECT_FALSE(Words(*said).contains("made")) << *said;
}

TEST_P(Inside, CannotGainPrivilegesThatItsSpecForbids) {
  const auto said = Says(kShowStatus, {{"process", {{"noNewPrivileges", true}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  auto fields = Fields(*said);
  ASSERT_EQ(fields.contains("Uid"), true) << *said;
  EXPECT_EQ(fields["NoNewPrivs"], "1");
}

TEST_P(Inside, HasTheEnvironmentOfItsSpecAndNoOther) {
  const auto said =
      SaysTo({"env"}, {{"process", {{"env", {"PATH=/bin", "ONE=1", "TWO=two", "EMPTY="}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  std::set<std::string> words = Words(*said);
  EXPECT_THAT(words, IsSupersetOf({"PATH=/bin", "ONE=1", "TWO=two", "EMPTY="}));
  // An OCI runtime may add HOME. Source: runc 1.3, libcontainer/init_linux.go.
  std::erase_if(words, [](const std::string& word) { return word.starts_with("HOME="); });
  EXPECT_EQ(words.size(), 4U) << *said;
}

TEST_P(Inside, BeginsInItsWorkingDirectory) {
  const auto said = Says("pwd", {{"process", {{"cwd", "/tmp"}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said), ElementsAre("/tmp"));
}

TEST_P(Inside, HasItsHostnameAndTheNodeKeepsItsOwn) {
  std::array<char, 256> before{};
  ASSERT_EQ(gethostname(before.data(), before.size()), 0);
  const auto said = Says("hostname", {{"hostname", "inside-it"}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  std::array<char, 256> after{};
  ASSERT_EQ(gethostname(after.data(), after.size()), 0);
  EXPECT_THAT(Words(*said), ElementsAre("inside-it"));
  EXPECT_STREQ(after.data(), before.data());
}

TEST_P(Inside, HasTheResourceLimitsOfItsSpec) {
  const auto said = Says("ulimit -Sn; ulimit -Hn; ulimit -Sc",
                         {{"process",
                           {{"rlimits",
                             {{{"type", "RLIMIT_NOFILE"}, {"soft", 101}, {"hard", 202}},
                              {{"type", "RLIMIT_CORE"}, {"soft", 0}, {"hard", 0}}}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_EQ(*said, "101\n202\n0\n");
}

TEST_P(Inside, CannotReadWhatItsSpecMasks) {
  const std::string file = "/etc/" + Unique("secret");
  const std::string folder = "/etc/" + Unique("secrets");
  const OnRoot a_file(node().rootfs() + file, "a secret\n");
  const OnRoot a_folder(node().rootfs() + folder);
  const OnRoot in_it(node().rootfs() + folder + "/key", "a secret\n");
  const auto said = Says("cat " + file + "; ls " + folder + "; cat " + folder + "/key",
                         {{"linux", {{"maskedPaths", {file, folder, "/no/such/path"}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  if (!TheSetup().anybodys && !IsSupported(backend(), kPathsOfTheImage)) {
    EXPECT_TRUE(said->contains("a secret")) << "then the row can go";
    return;
  }
  EXPECT_FALSE(said->contains("a secret")) << *said;
  EXPECT_FALSE(Words(*said).contains("key")) << *said;
}

TEST_P(Inside, CannotWriteWhatItsSpecHasReadOnly) {
  const std::string folder = "/etc/" + Unique("fixed");
  const OnRoot a_folder(node().rootfs() + folder);
  const auto said = Says("cd " + folder + "; if touch file; then echo written; fi",
                         {{"linux", {{"readonlyPaths", {folder, "/no/such/path"}}}}});
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  const bool written = fs::exists(node().rootfs() + folder + "/file");
  if (!TheSetup().anybodys && !IsSupported(backend(), kPathsOfTheImage)) {
    EXPECT_TRUE(written) << "then the row can go";
    return;
  }
  EXPECT_FALSE(Words(*said).contains("written")) << *said;
  EXPECT_FALSE(written);
}

TEST_P(Inside, CannotWriteARootThatIsReadOnly) {
  const std::string file = "/etc/" + Unique("file");
  const auto said = Says("if touch " + file + "; then echo written; fi",
                         {{"root", {{"path", "rootfs"}, {"readonly", true}}}});
  const bool written = fs::remove(node().rootfs() + file);
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_FALSE(Words(*said).contains("written")) << *said;
  EXPECT_FALSE(written);
}

TEST_P(Inside, HasTheMountsOfItsSpecAndWritesNoneThatIsReadOnly) {
  const std::string source = node().root() + "/" + Unique("data");
  const OnRoot data(source);
  const OnRoot fixed(source + "/fixed");
  const OnRoot text(source + "/text", "of the node\n");
  const Json scratch = {{"destination", "/scratch"},
                        {"type", "tmpfs"},
                        {"source", "tmpfs"},
                        {"options", {"nosuid", "size=64k"}}};
  const auto said = Says(
      "cat /mnt/data/text /mnt/text; echo new >/mnt/data/new; touch /mnt/fixed/file && echo bad-1\n"
      "echo more >>/mnt/text && echo bad-2; touch /scratch/file && ls /scratch",
      {{"mounts",
        MountsWith({Bind(source, "/mnt/data", "rw"), Bind(source + "/fixed", "/mnt/fixed", "ro"),
                    Bind(source + "/text", "/mnt/text", "ro"), scratch})}});
  for (const char* made : {"/mnt/data", "/mnt/fixed", "/mnt/text", "/scratch"}) {
    std::error_code error;
    fs::remove_all(node().rootfs() + made, error);
  }
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(said->starts_with("of the node\nof the node\n")) << *said;
  EXPECT_TRUE(said->ends_with("\nfile\n")) << *said;
  EXPECT_FALSE(said->contains("bad-")) << *said;
  EXPECT_EQ(e2e::ReadText(source + "/new"), "new\n");
  EXPECT_FALSE(fs::exists(source + "/fixed/file"));
}

/// Source: runtime-spec 1.2, config-linux.md, default devices.
TEST_P(Inside, HasTheDefaultDevices) {
  const auto said = Says(
      "for d in null zero full random urandom tty; do [ -c /dev/$d ] && echo $d; done\n"
      "echo lost >/dev/null && head -c 1 /dev/zero | wc -c");
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said),
              UnorderedElementsAre("null", "zero", "full", "random", "urandom", "tty", "1"));
}

TEST_P(Inside, HoldsNoDescriptorButItsStreams) {
  const auto said = Says(kDescriptors);
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said), UnorderedElementsAre("0", "1", "2"));
}

TEST_P(Inside, IsTheFirstProcessOfItsPidNamespace) {
  const auto said = Says("echo $$; for p in /proc/[0-9]*; do echo $p; done");
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_TRUE(Words(*said).contains("1")) << *said;
  EXPECT_LE(Words(*said).size(), 3U) << "it sees others than itself: " << *said;
}

INSTANTIATE_CONTRACT(Inside);

}  // namespace
}  // namespace gantry::contract
