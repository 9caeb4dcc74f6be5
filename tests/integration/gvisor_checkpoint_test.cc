// SPDX-License-Identifier: Apache-2.0
//
// What is saved with a sandbox and what is not; what is refused, and that the container goes on
// then; and that one that was restored is as good as any other.
#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/harness/events.h"
#include "tests/harness/forwarded.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Counts in its memory, and shows it in a file; ends with 7 when it is told to.
const Words kCounts{"sh", "-c",
                    "trap 'exit 7' TERM; i=0; while :; do i=$((i+1)); echo $i > /count; "
                    "sleep 0.05; done"};

class GvisorCheckpoint : public GvisorTest {
 protected:
  void TearDown() override {
    for (const std::string& image : images_) {
      Ctr({"images", "rm", image});
    }
    GvisorTest::TearDown();
  }

  static int Count(const std::string& id) {
    int count = 0;
    EXPECT_TRUE(Eventually([&] {
      count = std::atoi(Exec(id, {"cat", "/count"}).out.c_str());
      return count > 0;
    }));
    return count;
  }

  static void ExpectGoesOn(const std::string& id) {
    EXPECT_EQ(FindTask(id).state, "RUNNING");
    const int then = Count(id);
    EXPECT_TRUE(Eventually([&] { return Count(id) > then; }));
  }

  /// A directory for an image, empty.
  std::string Directory() {
    const std::string path = settings().root + "/" + Id("-image");
    fs::create_directory(path);
    return path;
  }

  static Output Save(const std::string& id, const std::string& directory, const Words& flags = {}) {
    Words words{"tasks", "checkpoint", "--image-path", directory};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(id);
    return Ctr(words);
  }

  /// `ctr` makes one for each checkpoint, too, and calls it by the second.
  static void ForgetImagesOf(const std::string& id) {
    std::istringstream names(Ctr({"images", "ls", "-q"}).out);
    for (std::string name; std::getline(names, name);) {
      if (name.contains("/" + id + ":")) {
        EXPECT_EQ(Ctr({"images", "rm", name}).status, 0);
      }
    }
  }

  /// As an image of containerd's, with which `Restore` makes the container anew.
  void SaveAndRemove(const std::string& id) {
    images_.push_back("checkpoint/" + id + "-" + std::to_string(images_.size()));
    const Output saved =
        Ctr({"containers", "checkpoint", "--rw", "--image", "--task", id, images_.back()});
    Remove(id);
    ASSERT_EQ(saved.status, 0) << saved.Text();
  }

  Words RestoreWords(const std::string& id) const {
    return {"containers", "restore", "--rw", "--live", id, images_.back()};
  }

  Output Restore(const std::string& id) const { return Ctr(RestoreWords(id)); }

  /// A container that has been saved after 20 and restored.
  void MakeRestored(const std::string& id) {
    StartDetached(id, kCounts, {"--null-io"});
    EXPECT_TRUE(Eventually([&] { return Count(id) > 20; }));
    ASSERT_NO_FATAL_FAILURE(SaveAndRemove(id));
    const Output restored = Restore(id);
    ASSERT_EQ(restored.status, 0) << restored.Text();
    EXPECT_GT(Count(id), 20);
  }

  static void KillEngine() {
    const HostProcess engine = node().Engine();
    ASSERT_NE(engine.pid, 0);
    kill(engine.pid, SIGKILL);
    ASSERT_TRUE(WaitGone(engine.pid));
  }

 private:
  std::vector<std::string> images_;
};

TEST_F(GvisorCheckpoint, LeavesTheContainerAsItWas) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartDetached(id, kCounts);
  for (int i = 0; i < 2; ++i) {
    const Output saved = Save(id, directory);
    ASSERT_EQ(saved.status, 0) << saved.Text();
    for (const char* name : {"checkpoint.img", "pages_meta.img", "pages.img"}) {
      EXPECT_GT(fs::file_size(directory + "/" + name), 0U) << name;
    }
    ExpectGoesOn(id);
    ForgetImagesOf(id);
  }
  EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  ExpectGoesOn(id);
  Remove(id);
}

TEST_F(GvisorCheckpoint, WithExitEndsItAsAKilledOne) {
  const std::string id = Id();
  const std::string directory = Directory();
  // Detached: who waits for it would remove it while `ctr` still compares its snapshots.
  Events events(node());
  StartDetached(id, kCounts);
  const Output saved = Save(id, directory, {"--exit"});
  ASSERT_EQ(saved.status, 0) << saved.Text();
  const std::vector<Event> seen = events.Until("/tasks/exit", id);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().Field("exit_status"), "137") << seen.back().body;
  EXPECT_EQ(FindTask(id).state, "STOPPED");
  Remove(id);
  EXPECT_TRUE(fs::exists(directory + "/checkpoint.img"));
}

TEST_F(GvisorCheckpoint, OfAFurtherContainerIsRefused) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  const std::string directory = Directory();
  StartDetached(root, kCounts, AsRoot(root));
  StartDetached(further, kCounts, AsFurther(root));
  const Output refused = Save(further, directory);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("whole sandboxes"), HasSubstr("'" + root + "'")));
  EXPECT_THAT(Save(root, directory, {"--exit"}).err, HasSubstr("2 containers"));
  EXPECT_TRUE(fs::is_empty(directory));
  ExpectGoesOn(further);
  ExpectGoesOn(root);
  Remove(further);
  Remove(root);
}

TEST_F(GvisorCheckpoint, ToAFullDiskIsRefused) {
  const std::string id = Id();
  const std::string directory = Directory();
  const Output mounted =
      RunProgram({"mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", directory});
  ASSERT_EQ(mounted.status, 0) << mounted.Text();
  StartDetached(id, kCounts);
  for (const Words& flags : {Words(), Words{"--exit"}}) {
    const Output refused = Save(id, directory, flags);
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.err, HasSubstr("no space left on device"));
    EXPECT_TRUE(fs::is_empty(directory));
    ExpectGoesOn(id);
  }
  Remove(id);
  EXPECT_EQ(RunProgram({"umount", directory}).status, 0);
}

TEST_F(GvisorCheckpoint, OfAnotherBuildIsRefused) {
  if (!fs::exists(OtherRunsc())) {
    GTEST_SKIP() << "there is one release of runsc";
  }
  const std::string id = Id();
  const auto options = [](const std::string& runsc) { return "binary_name = \"" + runsc + "\"\n"; };
  const Words flags = WithOptions(options(Runsc()));
  StartDetached(id, kCounts, flags);
  ASSERT_NO_FATAL_FAILURE(SaveAndRemove(id));
  WriteText(flags.back(), options(OtherRunsc()));
  const Output refused = Restore(id);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("another build of runsc"), HasSubstr(OtherRunsc())));
  EXPECT_EQ(FindTask(id).pid, 0);
  Ctr({"containers", "rm", id});
}

TEST_F(GvisorCheckpoint, IsRestoredToWhatRunsAsAnyOther) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(MakeRestored(id));
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).status, 4);
  EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  EXPECT_EQ(FindTask(id).state, "PAUSED");
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  ExpectGoesOn(id);
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "TERM", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  EXPECT_THAT(Ctr({"tasks", "rm", id}).err, HasSubstr("exit code 7"));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(GvisorCheckpoint, IsSavedAndRestoredOnceMore) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(MakeRestored(id));
  ASSERT_NO_FATAL_FAILURE(SaveAndRemove(id));
  const Output restored = Restore(id);
  EXPECT_EQ(restored.status, 0) << restored.Text();
  EXPECT_GT(Count(id), 20);
  ExpectGoesOn(id);
  Remove(id);
}

TEST_F(GvisorCheckpoint, TakesAVolumeOfTheSentrysWithIt) {
  const std::string id = Id();
  const std::string volume = Directory();
  const std::string hint = "dev.gvisor.spec.mount.data.";
  StartDetached(id, {"sh", "-c", "echo text > /data/note; " + kCounts.back()},
                {"--null-io", "--annotation", hint + "type=tmpfs", "--annotation",
                 hint + "share=container", "--annotation", hint + "source=" + volume, "--mount",
                 "type=bind,src=" + volume + ",dst=/data,options=rbind:rw"});
  EXPECT_GT(Count(id), 0);
  ASSERT_NO_FATAL_FAILURE(SaveAndRemove(id));
  EXPECT_TRUE(fs::is_empty(volume));
  const Output restored = Restore(id);
  ASSERT_EQ(restored.status, 0) << restored.Text();
  EXPECT_EQ(Exec(id, {"cat", "/data/note"}).out, "text\n");
  ExpectGoesOn(id);
  Remove(id);
  EXPECT_TRUE(fs::is_empty(volume));
}

TEST_F(GvisorCheckpoint, RestoredOutlivesTheEngine) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(MakeRestored(id));
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  ExpectGoesOn(id);
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "TERM", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  EXPECT_THAT(Ctr({"tasks", "rm", id}).err, HasSubstr("exit code 7"));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(GvisorCheckpoint, IsRestoredByTheNextEngine) {
  std::string id = Id();
  StartDetached(id, kCounts, {"--null-io"});
  EXPECT_TRUE(Eventually([&] { return Count(id) > 20; }));
  ASSERT_NO_FATAL_FAILURE(SaveAndRemove(id));
  Program restore = StartCtr(node(), RestoreWords(id), {});
  // The sentry that is to be restored is there, or has been.
  EXPECT_TRUE(Eventually([&] { return !RunscsOf(id, "runsc-sandbox").empty(); }));
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  EXPECT_EQ(restore.Wait(), 0) << restore.err();
  EXPECT_GT(Count(id), 20);
  ExpectGoesOn(id);
  Remove(id);
}

TEST_F(GvisorCheckpoint, CutShortByTheEnginesEndLeavesItRunning) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartDetached(id, kCounts);
  EXPECT_GT(Count(id), 0);
  Program save = StartCtr(node(), {"tasks", "checkpoint", "--image-path", directory, id}, {});
  EXPECT_TRUE(Eventually([&] { return fs::exists(directory + "/checkpoint.img"); }));
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  EXPECT_EQ(save.Wait(), 0) << "it is asked again: " << save.err();
  ExpectGoesOn(id);
  Remove(id);
}

/// In a network namespace with a loopback, where its ports are forwarded.
class GvisorForwardedCheckpoint : public GvisorCheckpoint {
 protected:
  void SetUp() override {
    GvisorCheckpoint::SetUp();
    if (IsSkipped()) {
      return;
    }
    outside_.emplace(
        Words{"unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 1000"});
    if (!outside_->ReadUntil("up\n")) {
      GTEST_SKIP() << "no network namespaces here: " << outside_->err();
    }
    netns_ = OpenNetns(outside_->pid());
  }

  void StartServer(const std::string& id) const {
    const std::string path = "/proc/" + std::to_string(outside_->pid()) + "/ns/net";
    // accept(2) is interrupted in a sentry of 20240729 that stood still, and nc ends with that.
    StartDetached(id, {"sh", "-c", "while :; do " + EchoScript(8080) + "; done"},
                  {"--with-ns", "network:" + path, "--null-io"});
    ExpectListens(id);
  }

  static void ExpectListens(const std::string& id) {
    EXPECT_TRUE(Eventually(
        [&] { return Exec(id, {"sh", "-c", "netstat -ltn | grep -q ':8080 '"}).status == 0; }));
  }

  UniqueFd Connect() const { return ConnectIn(netns_, 8080); }

  static void ExpectEnded(const UniqueFd& client) {
    const auto [text, error] = HearAll(client);
    EXPECT_EQ(text, "");
    EXPECT_TRUE(error == 0 || error == ECONNRESET) << error;
  }

  /// Of the container's processes.
  static std::string InSentry(const std::string& id) { return Exec(id, {"ps"}).out; }

  std::optional<Program> outside_;
  UniqueFd netns_;
};

TEST_F(GvisorForwardedCheckpoint, EndsConnectionsAndTakesNewOnes) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartServer(id);
  const UniqueFd client = Connect();
  const UniqueFd idle = Connect();
  ExpectAnswer(client, "before");
  EXPECT_THAT(InSentry(id), HasSubstr("gantry-forward"));
  const Output saved = Save(id, directory);
  ASSERT_EQ(saved.status, 0) << saved.Text();
  EXPECT_TRUE(fs::exists(directory + "/checkpoint.img"));
  ExpectEnded(client);
  ExpectEnded(idle);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  EXPECT_THAT(InSentry(id), Not(HasSubstr("gantry-forward")));
  ExpectListens(id);
  ExpectAnswer(Connect(), "after");
  Remove(id);
}

TEST_F(GvisorForwardedCheckpoint, OfAPausedOneLeavesItPaused) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartServer(id);
  const UniqueFd client = Connect();
  ExpectAnswer(client, "before");
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  const Output saved = Save(id, directory);
  EXPECT_EQ(saved.status, 0) << saved.Text();
  ExpectEnded(client);
  EXPECT_EQ(FindTask(id).state, "PAUSED");
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  ExpectListens(id);
  ExpectAnswer(Connect(), "after");
  Remove(id);
}

TEST_F(GvisorForwardedCheckpoint, ThatFailsTakesNewOnes) {
  const std::string id = Id();
  const std::string directory = Directory();
  ASSERT_EQ(RunProgram({"mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", directory}).status, 0);
  StartServer(id);
  const UniqueFd client = Connect();
  ExpectAnswer(client, "before");
  EXPECT_THAT(Save(id, directory).err, HasSubstr("no space left on device"));
  ExpectEnded(client);
  ExpectListens(id);
  ExpectAnswer(Connect(), "after");
  Remove(id);
  EXPECT_EQ(RunProgram({"umount", directory}).status, 0);
}

TEST_F(GvisorForwardedCheckpoint, CutShortByTheEnginesEndTakesNewOnes) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartServer(id);
  const UniqueFd client = Connect();
  ExpectAnswer(client, "before");
  Program save = StartCtr(node(), {"tasks", "checkpoint", "--image-path", directory, id}, {});
  ExpectEnded(client);
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  EXPECT_EQ(save.Wait(), 0) << "it is asked again: " << save.err();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  ExpectListens(id);
  ExpectAnswer(Connect(), "after");
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
