// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that the core makes for a container: on record before they are made, and
// removed with it, whoever does that.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/pod/pod_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MadeCgroups : public PodTest {
 protected:
  /// The engine sees that tree; each container is made in cgroups that are made for it.
  void Begin(cgroup::CgroupHierarchy tree) {
    around_.cgroups = std::move(tree);
    RestartEngine();
    backend_.UseContext([this](ContainerContext& context, bool recovered) {
      return recovered ? Status() : MakeIn(context);
    });
  }

  Status MakeIn(ContainerContext& context) {
    GANTRY_TRY(made_, context.MakeCgroups(devices_));
    return {};
  }

  void BeginWithFiles() {
    files_.Put("cgroup.controllers", "pids\n");
    files_.Put("pods/cgroup.controllers", "pids\n");
    Begin(*cgroup::CgroupHierarchy::At(files_.path()));
  }

  /// config.json of an announced container, with that in its `linux`.
  void Specify(const std::string& id, const std::string& on_linux) {
    const std::string spec = R"({"ociVersion":"1.2.0","process":{"args":["/bin/true"],"cwd":"/"},)"
                             R"("root":{"path":"rootfs"},"linux":{)" +
                             on_linux + R"(,"namespaces":[{"type":"pid"},{"type":"mount"}]}})";
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/" + id + "/config.json", spec, 0644));
  }

  void AnnounceIn(const std::string& id, const std::string& path, const std::string& group = "") {
    Announce(id, group);
    Specify(id, R"("cgroupsPath":")" + path + "\"");
  }

  std::string Dir(const std::string& name = "c1") const { return files_.path() + "/pods/" + name; }

  bool IsThere(const std::string& name = "c1") const { return Exists(Dir(name)); }

  std::vector<std::string> PlannedDirs(uint64_t instance = 1) {
    Settle();
    return keeper_.plans[instance].cgroup_dirs;
  }

  os::FakeCgroupFs files_;
  std::vector<std::string> made_;
  CgroupDevices devices_ = CgroupDevices::kOfSpec;
};

TEST_F(MadeCgroups, AreThoseOfTheSpec) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_THAT(made_, ElementsAre(Dir()));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, AreNoneWhereTheSpecNamesNone) {
  BeginWithFiles();
  made_ = {"something"};
  Announce("c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(made_, IsEmpty());
  EXPECT_THAT(RecordOf("c1").cgroups, IsEmpty());
}

TEST_F(MadeCgroups, AreKnownToWhoeverEndsTheContainer) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(PlannedDirs(), ElementsAre(Dir()));
  EXPECT_THAT(RecordOf("c1").cgroups, ElementsAre(Dir()));
  const auto bytes = ReadFile(store::PathOf(dir_.path() + "/c1"), 1 << 20);
  ASSERT_TRUE(bytes);
  EXPECT_THAT(link::PeekRecord(*bytes)->cgroup_dirs, ElementsAre(Dir()));
}

TEST_F(MadeCgroups, GoWithTheContainer) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  End("c1", 3);
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(Delete("c1")->exit_status(), 3U);
  EXPECT_FALSE(IsThere());
  EXPECT_TRUE(Exists(files_.path() + "/pods"));
}

TEST_F(MadeCgroups, GoAfterTheBackendsDeleteOnly) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  backend_.FailNext("delete c1", Error{Code::kUnavailable, 0, "not now", {}});
  EXPECT_EQ(CodeOf(Delete("c1")), Code::kUnavailable);
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, ThatAreBusyAreRemovedByTheNextDelete) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  files_.Put("pods/c1/in-the-way", "");
  EXPECT_FALSE(Delete("c1"));
  std::filesystem::remove(Dir() + "/in-the-way");
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWhereAnotherEngineDeletes) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWhereTheBackendDoesNotKnowTheContainerAnyMore) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  backend_.FailNext("recover c1", Error{Code::kInternal, 0, "no idea", {}});
  RestartEngine();
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWithACreateThatFails) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.FailNext("create c1", Error{Code::kInternal, 0, "no luck", {}});
  EXPECT_FALSE(Create("c1"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(PlannedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, GoWithACreateThatTheEnginesEndInterrupts) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.Hold("create c1");
  Send("Create", CreateRequest("c1"), "c1");
  ASSERT_TRUE(Until([&] { return backend_.Held("create c1"); }));
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(RecordOf("c1").cgroups, ElementsAre(Dir()));
  backend_.FailNext("recover c1", Error{Code::kAborted, 0, "it was never finished", {}});
  RestartEngine();
  EXPECT_EQ(CodeOf(State("c1")), Code::kNotFound);
  EXPECT_FALSE(IsThere());
  backend_.Release("create c1");
  EXPECT_TRUE(Ask<pb::CreateTaskResponse>("Create", CreateRequest("c1"), "c1", true));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, GoWithTheInstance) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  keeper_.AskToDelete(1, 1);
  ASSERT_TRUE(Until([&] { return !keeper_.deleted.empty(); }));
  EXPECT_FALSE(IsThere());
}

TEST_F(MadeCgroups, GoWithThePodAndAreAnothersThen) {
  BeginWithFiles();
  RunPod();
  AnnounceIn("a", "/pods/c1", kPod);
  ASSERT_TRUE(Create("a", kPod));
  const uint32_t stopping = SendSandbox("StopSandbox", Of<sandbox_pb::StopSandboxRequest>(), kPod);
  ASSERT_TRUE(TakeAs<sandbox_pb::StopSandboxResponse>(stopping));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(RecordOf("a").cgroups, IsEmpty());
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  RestartEngine();
  EXPECT_TRUE(Delete("a"));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, AreNotMadeWhereTheyCannotBeOnRecord) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  const std::string record = store::PathOf(dir_.path() + "/c1");
  backend_.UseContext([&](ContainerContext& context, bool) {
    // A file does not take the place of a directory.
    std::filesystem::remove(record);
    std::filesystem::create_directories(record + "/in-the-way");
    Status made = MakeIn(context);
    EXPECT_FALSE(IsThere());
    std::filesystem::remove_all(record);
    return made;
  });
  EXPECT_FALSE(Create("c1"));
  EXPECT_THAT(PlannedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, WhoseLimitCannotBeAreNotMade) {
  BeginWithFiles();
  Announce("c1");
  Specify("c1", R"("cgroupsPath":"/pods/c1","resources":{"pids":{"limit":7}})");
  Status made;
  backend_.UseContext([&](ContainerContext& context, bool) {
    made = MakeIn(context);
    return Status();
  });
  ASSERT_TRUE(Create("c1")) << "the backend does without";
  EXPECT_THAT(MessageOf(made), HasSubstr("pids.max"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(PlannedDirs(), IsEmpty());
  EXPECT_THAT(RecordOf("c1").cgroups, IsEmpty());
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(MadeCgroups, OfAnotherContainerAreRefused) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  AnnounceIn("c2", "pods//c1");
  const auto refused = Create("c2");
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("that of container 'c1'"));
  EXPECT_TRUE(IsThere());
}

TEST_F(MadeCgroups, WithForeignProcessesStay) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  files_.Put("pods/c1/cgroup.procs", "1\n");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("not the container's"));
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(PlannedDirs(), IsEmpty());
}

TEST_F(MadeCgroups, OfABadPathAreRefused) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/../c1");
  EXPECT_EQ(CodeOf(Create("c1")), Code::kInvalidArgument);
  AnnounceIn("c2", "no-slice:a:b");
  const auto refused = Create("c2");
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("/linux/cgroupsPath"));
}

TEST_F(MadeCgroups, AreTheSameWhenAskedForAgain) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  backend_.UseContext([this](ContainerContext& context, bool) -> Status {
    GANTRY_CHECK_OK(MakeIn(context));
    files_.Put("pods/c1/cgroup.procs", "1\n");  // The container's own by now.
    made_.clear();
    return MakeIn(context);
  });
  ASSERT_TRUE(Create("c1"));
  EXPECT_THAT(made_, ElementsAre(Dir()));
  made_.clear();
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_THAT(made_, ElementsAre(Dir()));
}

TEST_F(MadeCgroups, ThatWereNotFinishedAreMadeAnew) {
  BeginWithFiles();
  AnnounceIn("c1", "/pods/c1");
  ASSERT_TRUE(Create("c1"));
  store::Record record = RecordOf("c1");
  ASSERT_EQ(record.blobs.at("made-cgroups"), "made");
  record.blobs["made-cgroups"] = "making";
  ASSERT_TRUE(store::Write(record));
  std::filesystem::remove(Dir());
  backend_.UseContext([this](ContainerContext& context, bool) { return MakeIn(context); });
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere());
}

/// In the kernel's own trees.
class MadeKernelCgroups : public MadeCgroups, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    const auto node = cgroup::CgroupHierarchy::OfNode();
    if (geteuid() != 0 || !node) {
      GTEST_SKIP() << (node ? "needs root" : node.error().message);
    }
    const bool v2 = GetParam();
    if (v2 ? node->unified().mount_dir.empty() : !node->v1().contains("pids")) {
      GTEST_SKIP() << "the node has no such tree";
    }
    tree_ = v2 ? *cgroup::CgroupHierarchy::At(node->unified().mount_dir) : *node;
    name_ = "gantry-test-" + RandomName(12);
    const auto probe = cgroup::Cgroup::Create(tree_, "/" + name_);
    if (!probe) {
      GTEST_SKIP() << "cannot make cgroups here: " << probe.error().message;
    }
    ASSERT_TRUE(probe->Remove(os::kBound));
    Begin(tree_);
  }

  /// Where a test fails they may be there.
  void TearDown() override {
    if (!name_.empty()) {
      EXPECT_TRUE(cgroup::Cgroup::Named(tree_, "/" + name_)->Kill(os::kBound));
      EXPECT_TRUE(cgroup::Cgroup::Named(tree_, "/" + name_)->Remove(os::kBound));
    }
  }

  cgroup::CgroupHierarchy tree_;
  std::string name_;
};

INSTANTIATE_TEST_SUITE_P(Trees, MadeKernelCgroups, testing::Bool(),
                         [](const auto& tree) { return tree.param ? "V2" : "V1"; });

TEST_P(MadeKernelCgroups, EndWithWhatIsInThem) {
  Announce("c1");
  const std::string limits = GetParam() ? "" : R"(,"resources":{"pids":{"limit":7}})";
  Specify("c1", R"("cgroupsPath":")" + name_ + "\"" + limits);
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  const auto cgroup = cgroup::Cgroup::Named(tree_, "/" + name_);
  EXPECT_EQ(made_, cgroup->Dirs());
  if (!GetParam()) {
    EXPECT_EQ(ReadFile(cgroup->DirOf("pids") + "/pids.max", 100).value_or(""), "7\n");
  }
  os::IdleProcess left;
  ASSERT_TRUE(cgroup->AddProcess(left.pid()));
  ASSERT_TRUE(Start("c1"));
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  EXPECT_TRUE(left.Alive());
  const auto deleted = Delete("c1");
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_FALSE(left.Alive());
  EXPECT_FALSE(cgroup->Exists());
}

/// Whether a process in the cgroup may open /dev/kmsg, which no container has by default.
bool MayOpenKmsg(const cgroup::Cgroup& cgroup) {
  int gate[2];
  EXPECT_EQ(pipe2(gate, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool let = read(gate[0], &byte, 1) == 1;
    _exit(let && open("/dev/kmsg", O_RDONLY | O_CLOEXEC) < 0 && errno == EPERM ? 1 : 0);
  }
  close(gate[0]);
  EXPECT_TRUE(cgroup.AddProcess(child));
  EXPECT_EQ(write(gate[1], "\n", 1), 1);
  close(gate[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

TEST_P(MadeKernelCgroups, HaveTheDevicesOfTheSpecOnly) {
  if (!GetParam() && !tree_.v1().contains("devices")) {
    GTEST_SKIP() << "the node has no such tree";
  }
  const auto cgroup = cgroup::Cgroup::Named(tree_, "/" + name_);
  AnnounceIn("c1", name_);
  ASSERT_TRUE(Create("c1"));
  EXPECT_FALSE(MayOpenKmsg(*cgroup)) << "its spec allows none";
  ASSERT_TRUE(Delete("c1"));
  Announce("c2");
  Specify("c2", R"("cgroupsPath":")" + name_ +
                    R"(","resources":{"devices":[{"allow":false,"access":"rwm"},)"
                    R"({"allow":true,"type":"c","major":1,"minor":11,"access":"r"}]})");
  ASSERT_TRUE(Create("c2"));
  EXPECT_TRUE(MayOpenKmsg(*cgroup));
  ASSERT_TRUE(Delete("c2"));
  devices_ = CgroupDevices::kNotLimited;
  AnnounceIn("c3", name_);
  ASSERT_TRUE(Create("c3"));
  EXPECT_TRUE(MayOpenKmsg(*cgroup));
  EXPECT_TRUE(Delete("c3"));
}

TEST_F(MadeCgroups, WhoseRulesForDevicesAreNoneAreNotMade) {
  BeginWithFiles();
  Announce("c1");
  Specify("c1", R"("cgroupsPath":"/pods/c1","resources":{"devices":[{"type":"x"}]})");
  const auto refused = Create("c1");
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("/linux/resources/devices/0/type"));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(PlannedDirs(), IsEmpty());
}

TEST_P(MadeKernelCgroups, AreUsedForWhatTheBackendLeavesOut) {
  AnnounceIn("c1", name_);
  backend_.LeaveOut("pause");
  backend_.LeaveOut("resume");
  ASSERT_TRUE(Create("c1"));
  ASSERT_TRUE(Start("c1"));
  pb::PauseRequest pause;
  pause.set_id("c1");
  const auto paused = Ask<wire::Empty>("Pause", pause, "c1");
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_EQ(cgroup::Cgroup::Named(tree_, "/" + name_)->Frozen().value_or(false), true);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::PAUSED);
  pb::ResumeRequest resume;
  resume.set_id("c1");
  ASSERT_TRUE(Ask<wire::Empty>("Resume", resume, "c1"));
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
}

}  // namespace
}  // namespace gantry::task
