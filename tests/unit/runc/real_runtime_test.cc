// SPDX-License-Identifier: Apache-2.0
//
// The backend with crun and runc as they are installed, in a root file system
// made of busybox. Needs root.
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/container_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/backend.h"
#include "plugins/runc/documents.h"
#include "plugins/runc/sandbox.h"
#include "tests/unit/runc/container_fixture.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::chrono::seconds kLimit{20};

class RealRuntime : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Options options = DefaultOptions();
    options.binary_name = GetParam();
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    if (!FindRuntime(options)) {
      GTEST_SKIP() << GetParam() << " is not installed";
    }
    if (!IsThere("/bin/busybox")) {
      GTEST_SKIP() << "busybox is not installed";
    }
    options.root = dir_ / "state";
    // A bundle whose path is too long for a socket's address.
    bundle_ = dir_ / std::string(60, 'b') + "/" + std::string(60, 'c');
    MakeRootfs();
    SandboxRequest request;
    request.ns = Namespace::Parse("ns").value_or(Namespace());
    sandbox_ = *RuncSandbox::Make(request, context_, options);
    request_.id = ContainerId::Parse("c.1_x-y").value_or(ContainerId());
    request_.bundle = bundle_;
    cgroup_ = Format("/gantry-runc-test-{}/{}", getpid(), GetParam());
  }

  void TearDown() override {
    if (cgroup_.empty()) {
      return;
    }
    if (made_) {
      EXPECT_TRUE(made_->Delete());
    }
    EXPECT_THAT(*cgroup::CgroupDirectories(cgroup_), IsEmpty());
    EXPECT_FALSE(IsThere(State()));
    const auto parents = cgroup::CgroupDirectories(Format("/gantry-runc-test-{}", getpid()));
    for (const std::string& parent : *parents) {
      rmdir(parent.c_str());
    }
  }

  void MakeRootfs() {
    MakeDir(bundle_ + "/rootfs/bin");
    MakeDir(bundle_ + "/rootfs/proc");
    MakeDir(bundle_ + "/rootfs/dev");
    std::filesystem::copy_file("/bin/busybox", bundle_ + "/rootfs/bin/busybox");
    for (const char* name : {"sh", "sleep", "cat", "echo", "tty"}) {
      ASSERT_EQ(symlink("busybox", (bundle_ + "/rootfs/bin/" + name).c_str()), 0);
    }
    Write(bundle_ + "/rootfs/bin/data", "no program", 0644);
  }

  /// `args` and `extra` are JSON; `namespaces` what the container gets of its own.
  void WriteSpec(const std::string& args, const std::string& extra = "",
                 const std::string& namespaces = R"({"type": "pid"}, )") {
    request_.spec_json = Format(
        R"({{"ociVersion": "1.0.2", "process": {{"terminal": {}, "user": {{"uid": 0, "gid": 0}},
        "args": {}, "env": ["PATH=/bin"], "cwd": "/"}}, "root": {{"path": "rootfs"}}, {}
        "mounts": [{{"destination": "/proc", "type": "proc", "source": "proc"}},
        {{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}},
        {{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
          "options": ["newinstance", "ptmxmode=0666", "mode=0620"]}}],
        "linux": {{"cgroupsPath": "{}", "namespaces": [{}{{"type": "mount"}}, {{"type": "ipc"}},
        {{"type": "uts"}}]}}}})",
        request_.terminal, args, extra, cgroup_, namespaces);
    Write(bundle_ + "/config.json", request_.spec_json);
  }

  Status Create() {
    auto made = sandbox_->CreateContainer(request_, container_);
    if (!made) {
      return std::unexpected(made.error());
    }
    made_ = std::move(*made);
    return {};
  }

  Status CreateAndStart() {
    GANTRY_CHECK_OK(Create());
    return made_->Start();
  }

  uint32_t ExitCode() {
    const auto end = container_.process.bound->Wait(kLimit);
    return end ? end->code() : 9999;
  }

  std::string State() const { return dir_ / "state/ns/c.1_x-y"; }

  TempDir dir_;
  std::string bundle_;
  std::string cgroup_;
  FakeSandboxContext context_{Orphans::kAdopted};
  FakeContainerContext container_{"c.1_x-y"};
  ContainerRequest request_;
  std::unique_ptr<Sandbox> sandbox_;
  std::unique_ptr<Container> made_;
};

TEST_P(RealRuntime, RunsToItsExitCodeWithOneRunOfTheRuntime) {
  TestPipe out;
  container_.process.stdio.out.fd = std::move(out.write_end);
  WriteSpec(R"(["sh", "-c", "echo hello; exit 7"])");
  const Status started = CreateAndStart();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(ReadStream(out.read_end), "hello\n");
  EXPECT_EQ(ExitCode(), 7U);
  EXPECT_TRUE(made_->Delete());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
}

TEST_P(RealRuntime, DoesNotRunBeforeStart) {
  WriteSpec(R"(["sh", "-c", "exit 7"])");
  ASSERT_TRUE(Create());
  EXPECT_FALSE(container_.process.bound->Ended());
  EXPECT_THAT(*cgroup::CgroupDirectories(cgroup_), Not(IsEmpty()));
  ASSERT_TRUE(made_->Delete());
  EXPECT_EQ(ExitCode(), 128U + SIGKILL);
}

TEST_P(RealRuntime, NamesAProgramThatIsNotThere) {
  WriteSpec(R"(["nosuch"])");
  const Status made = Create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument) << made.error().message;
  EXPECT_THAT(made.error().message, HasSubstr("nosuch"));
  EXPECT_THAT(made.error().message, HasSubstr("not found in $PATH"));
}

TEST_P(RealRuntime, NamesAProgramThatIsNone) {
  WriteSpec(R"(["/bin/data"])");
  const Status made = CreateAndStart();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument) << made.error().message;
}

TEST_P(RealRuntime, FailsWithoutARootfs) {
  WriteSpec(R"(["sh"])");
  std::filesystem::remove_all(bundle_ + "/rootfs");
  const Status made = Create();
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("rootfs"));
}

TEST_P(RealRuntime, FailsWithoutAConfig) {
  WriteSpec(R"(["sh"])");
  std::filesystem::remove(bundle_ + "/config.json");
  EXPECT_FALSE(Create());
}

TEST_P(RealRuntime, HandsATerminalOver) {
  request_.terminal = true;
  container_.process.stdio.terminal = true;
  WriteSpec(R"(["sh", "-c", "tty; read line; echo got-$line; exit 3"])");
  const Status started = CreateAndStart();
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_TRUE(container_.process.console);
  EXPECT_THAT(ReadStream(container_.process.console, "\n"), HasSubstr("/dev/"));
  ASSERT_EQ(write(container_.process.console.get(), "word\n", 5), 5);
  EXPECT_THAT(ReadStream(container_.process.console, "got-word"), HasSubstr("got-word"));
  EXPECT_EQ(ExitCode(), 3U);
  EXPECT_FALSE(IsThere(bundle_ + "/tty"));
}

class RealExec : public RealRuntime {
 protected:
  void SetUp() override {
    RealRuntime::SetUp();
    if (IsSkipped()) {
      return;
    }
    WriteSpec(R"(["sleep", "1000"])");
    const Status started = CreateAndStart();
    ASSERT_TRUE(started) << started.error().message;
  }

  Status Start(const std::string& args, bool terminal = false) {
    ExecRequest request;
    request.id = ExecId::Parse("e1").value_or(ExecId());
    request.terminal = terminal;
    request.process_json = Format(
        R"({{"terminal": {}, "user": {{"uid": 0}}, "args": {}, "env": ["PATH=/bin"], "cwd": "/"}})",
        terminal, args);
    GANTRY_TRY(exec_, made_->Exec(request, context_of_exec_));
    return exec_->Start();
  }

  FakeProcessContext context_of_exec_{"c.1_x-y", "e1"};
  std::unique_ptr<Process> exec_;
};

TEST_P(RealExec, RunsInsideWithItsStreams) {
  TestPipe in;
  TestPipe out;
  context_of_exec_.stdio.in.fd = std::move(in.read_end);
  context_of_exec_.stdio.out.fd = std::move(out.write_end);
  const Status started = Start(R"(["sh", "-c", "cat; exit 5"])");
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_EQ(write(in.write_end.get(), "through", 7), 7);
  in.write_end.reset();
  EXPECT_EQ(ReadStream(out.read_end), "through");
  EXPECT_EQ(context_of_exec_.bound->Wait(kLimit)->code(), 5U);
  EXPECT_TRUE(exec_->Delete());
}

TEST_P(RealExec, NamesAProgramThatIsNotThere) {
  const Status started = Start(R"(["nosuch"])");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kInvalidArgument) << started.error().message;
  EXPECT_THAT(started.error().message, HasSubstr("nosuch"));
}

TEST_P(RealExec, HandsATerminalOver) {
  context_of_exec_.stdio.terminal = true;
  const Status started = Start(R"(["sh", "-c", "tty; exit 4"])", true);
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_TRUE(context_of_exec_.console);
  EXPECT_THAT(ReadStream(context_of_exec_.console, "\n"), HasSubstr("/dev/"));
  EXPECT_EQ(context_of_exec_.bound->Wait(kLimit)->code(), 4U);
}

TEST_P(RealExec, FailsInAnEndedContainer) {
  ASSERT_TRUE(container_.process.bound->Signal(SIGKILL));
  ASSERT_TRUE(container_.process.bound->Wait(kLimit));
  EXPECT_FALSE(Start(R"(["sh"])"));
}

TEST_P(RealRuntime, KillsWhatSharesThePidsOfTheHost) {
  WriteSpec(R"(["sh", "-c", "sleep 1000 & exit 0"])", "", "");
  const Status started = CreateAndStart();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(ExitCode(), 0U);
  EXPECT_TRUE(made_->Delete());
  EXPECT_THAT(*cgroup::CgroupDirectories(cgroup_), IsEmpty());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
}

TEST_P(RealRuntime, DeletesAPausedOneEvenWithoutABinary) {
  WriteSpec(R"(["sleep", "1000"])");
  ASSERT_TRUE(CreateAndStart());
  const auto directories = cgroup::CgroupDirectories(cgroup_);
  for (const std::string& directory : *directories) {
    for (const auto& [file, word] :
         {std::pair("/freezer.state", "FROZEN"), std::pair("/cgroup.freeze", "1")}) {
      if (IsThere(directory + file)) {
        ASSERT_TRUE(WriteFile(directory + file, word, 0));
      }
    }
  }
  context_.on_spawn = [](const SpawnRequest& request) {
    return Status(FailErrno(EACCES, "execute '{}'", request.argv[0]));
  };
  EXPECT_TRUE(made_->Delete());
  EXPECT_EQ(ExitCode(), 128U + SIGKILL);
}

TEST_P(RealRuntime, RunsHooksOfStartAndStop) {
  const std::string hook = R"([{"path": "/usr/bin/touch", "args": ["touch", ")";
  WriteSpec(R"(["sh", "-c", "exit 0"])", R"("hooks": {"poststart": )" + hook + dir_ / "started" +
                                             R"("]}], "poststop": )" + hook + dir_ / "stopped" +
                                             "\"]}]},");
  const Status started = CreateAndStart();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(IsThere(dir_ / "started"));
  EXPECT_EQ(ExitCode(), 0U);
  ASSERT_TRUE(made_->Delete());
  EXPECT_TRUE(IsThere(dir_ / "stopped"));
}

/// What they are told is more than a pipe holds: whoever writes it learns each time that nobody
/// reads.
TEST_P(RealRuntime, RunsHooksThatDoNotReadTheirState) {
  const auto touch = [&](const std::string& name) {
    return R"({"path": "/usr/bin/touch", "args": ["touch", ")" + (dir_ / name) + "\"]}";
  };
  const std::string text(size_t{200} << 10, 'x');
  WriteSpec(R"(["sh", "-c", "exit 0"])",
            R"("annotations": {"a": ")" + text + R"("}, "hooks": {"createRuntime": [)" +
                touch("made") + R"(], "poststart": [)" + touch("first") + ", " + touch("second") +
                R"(], "poststop": [)" + touch("third") + ", " + touch("last") + "]},");
  const Status started = CreateAndStart();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(ExitCode(), 0U);
  ASSERT_TRUE(made_->Delete());
  for (const char* const name : {"made", "first", "second", "third", "last"}) {
    EXPECT_TRUE(IsThere(dir_ / name)) << name;
  }
}

TEST_P(RealRuntime, RecoversBeforeAndAfterStart) {
  WriteSpec(R"(["sleep", "1000"])");
  ASSERT_TRUE(Create());
  const auto again = sandbox_->RecoverContainer(request_, container_, container_.blob);
  ASSERT_TRUE(again);
  const Status started = (*again)->Start();
  ASSERT_TRUE(started) << started.error().message;
  const auto third = sandbox_->RecoverContainer(request_, container_, container_.blob);
  ASSERT_TRUE(third);
  // A start that is replayed is not done twice, and not an error.
  EXPECT_TRUE((*third)->Start());
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
}

TEST_P(RealRuntime, RecoversWithoutItsBlob) {
  WriteSpec(R"(["sleep", "1000"])");
  ASSERT_TRUE(Create());
  const auto again = sandbox_->RecoverContainer(request_, container_, "");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->Start());
}

INSTANTIATE_TEST_SUITE_P(All, RealRuntime, testing::Values("crun", "runc"));
INSTANTIATE_TEST_SUITE_P(All, RealExec, testing::Values("crun", "runc"));

}  // namespace
}  // namespace gantry::runc
