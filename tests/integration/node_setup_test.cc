// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl node-setup` with the containerd of the run: what it writes containerd takes, pods run
// by it, and what it takes back leaves the files as they were, byte for byte.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/cri_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class NodeSetup : public CriTest {
 protected:
  void SetUp() override {
    if (settings().stock()) {
      GTEST_SKIP() << "the stock runtime needs no gantry";
    }
    CriTest::SetUp();
    before_ = ReadText(config());
  }

  void TearDown() override {
    if (settings().stock()) {
      return;
    }
    RemovePods();
    WriteText(config(), before_);
    std::filesystem::remove_all(drop_ins());
    EXPECT_EQ(node().RestartContainerd(), "");
    Connect();
    CriTest::TearDown();
  }

  static std::string config() { return settings().root + "/containerd.toml"; }

  static std::string drop_ins() { return settings().root + "/conf.d"; }

  /// gantry's, of this run.
  static std::string Handler() { return settings().runc() ? "runc" : settings().oci; }

  static Output Setup(const Words& words) {
    Words all{"env",
              "PATH=" + settings().gantry_bin + ":/usr/sbin:/usr/bin:/sbin:/bin",
              settings().gantry_bin + "/gantryctl",
              "node-setup",
              "--containerd",
              settings().containerd_bin + "/containerd",
              "--containerd-config",
              config(),
              "--socket",
              settings().address(),
              "--config",
              settings().root + "/gantry.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  static Words Named(Words words) {
    words.insert(words.end(), {"--handlers", Handler() + "=set-up"});
    return words;
  }

  void Restart() {
    ASSERT_EQ(node().RestartContainerd(), "");
    Connect();
  }

  void ExpectPodRuns() {
    PodConfig pod = Pod();
    pod.runtime_handler = "set-up";
    const std::string id = RunPod(pod);
    const std::string container = RunContainerIn(id, pod, "one", {"sleep", "1000"});
    EXPECT_EQ(Exec(container, {"sh", "-c", "exit 4"}).exit_code, 4);
    RemovePods();
  }

  /// Sets up, with a pod by what was set up, and takes it back. `file` is what changes.
  void ExpectRoundTrip(const std::string& file) {
    const std::string was = ReadText(file);
    const Output shown = Setup(Named({"--dry-run"}));
    ASSERT_EQ(shown.status, 0) << shown.Text();
    EXPECT_THAT(shown.out, HasSubstr("+++ " + file + "\n"));
    EXPECT_EQ(ReadText(file), was) << "--dry-run changed it";
    const Output done = Setup(Named({}));
    ASSERT_EQ(done.status, 0) << done.Text();
    EXPECT_THAT(ReadText(file), HasSubstr("runtimes.set-up]\n"));
    EXPECT_THAT(Setup(Named({})).out, HasSubstr("nothing to do"));
    const Output stale = Setup(Named({"--check"}));
    EXPECT_EQ(stale.status, 1);
    EXPECT_THAT(stale.err, HasSubstr("runs since before"));
    Restart();
    const Output fresh = Setup(Named({"--check"}));
    EXPECT_EQ(fresh.status, 0) << fresh.Text();
    ExpectPodRuns();
    const Output back = Setup({"--undo"});
    EXPECT_EQ(back.status, 0) << back.Text();
    EXPECT_EQ(ReadText(file), was);
    EXPECT_THAT(Setup({"--undo"}).out, HasSubstr("nothing to take back"));
  }

  std::string before_;
};

TEST_F(NodeSetup, OfTheMainFileIsUsedAndTakenBack) { ExpectRoundTrip(config()); }

TEST_F(NodeSetup, OfAFileOfItsOwnIsUsedAndTakenBack) {
  if (settings().release1()) {
    GTEST_SKIP() << "containerd 1.x replaces sections by those of an imported file";
  }
  const size_t line = before_.find('\n') + 1;
  const std::string importing = before_.substr(0, line) + "imports = [\"" + drop_ins() +
                                "/*.toml\"]\n" + before_.substr(line);
  WriteText(config(), importing);
  ExpectRoundTrip(drop_ins() + "/gantry.toml");
  EXPECT_EQ(ReadText(config()), importing);
  EXPECT_FALSE(std::filesystem::exists(drop_ins()));
}

TEST_F(NodeSetup, OfAShimByItsPathIsUsed) {
  const Words words{"--handlers", Handler() + "=set-up", "--shim",
                    settings().gantry_bin + "/containerd-shim-gantry-v1"};
  ASSERT_EQ(Setup(words).status, 0);
  EXPECT_THAT(ReadText(config()), HasSubstr("  runtime_path = \"" + settings().gantry_bin + "/"));
  Restart();
  ExpectPodRuns();
  EXPECT_EQ(Setup({"--undo"}).status, 0);
  EXPECT_EQ(ReadText(config()), before_);
}

TEST_F(NodeSetup, LeavesWhatItRefusesAsItIs) {
  const Output taken = Setup({"--handlers", Handler() + "=gantry"});
  EXPECT_EQ(taken.status, 1);
  EXPECT_THAT(taken.err, HasSubstr("has a runtime 'gantry' already"));
  EXPECT_EQ(ReadText(config()), before_);
  // What containerd's own parser refuses, though it is TOML.
  const std::string odd = "version = 2\n[grpc]\n  gid = \"nobody\"\n";
  WriteText(config(), odd);
  const Output refused = Setup(Named({}));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("containerd does not take"));
  EXPECT_EQ(ReadText(config()), odd);
}

}  // namespace
}  // namespace gantry::e2e
