// SPDX-License-Identifier: Apache-2.0
//
// The example with fakes of what gantryd lends to a backend: real processes, no gantryd. Needs
// root, and busybox, linked statically, in PATH.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <gantry/plugin.h>
#include <gantry/testing/container_context.h>
#include <gantry/testing/sandbox_context.h>

extern "C" const gantry::PluginDescriptor gantry_plugin;

namespace {

using namespace gantry;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kLimit{20};

std::string Busybox() {
  for (const char* folder : {"/bin", "/usr/bin", "/usr/local/bin"}) {
    if (fs::exists(fs::path(folder) / "busybox")) {
      return fs::path(folder) / "busybox";
    }
  }
  return "";
}

class PlainTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0U) << "needs root";
    char name[] = "/tmp/plain-test-XXXXXX";
    bundle_ = mkdtemp(name);
    fs::create_directories(bundle_ + "/rootfs/bin");
    fs::create_directories(bundle_ + "/rootfs/proc");
    fs::create_directories(bundle_ + "/rootfs/dev");
    fs::copy_file(Busybox(), bundle_ + "/rootfs/bin/busybox");
    fs::create_symlink("busybox", bundle_ + "/rootfs/bin/sh");
    backend_ = gantry_plugin.create("{}").value();
    sandbox_ = backend_->CreateSandbox({}, context_).value();
  }

  void TearDown() override { fs::remove_all(bundle_); }

  /// A container that runs `sh -c SCRIPT`; `more` goes into its process.
  Result<std::unique_ptr<Container>> Create(const std::string& script,
                                            const std::string& more = "") {
    request_.id = ContainerId::Parse("c1").value();
    request_.bundle = bundle_;
    request_.rootfs = bundle_ + "/rootfs";
    request_.spec_json = R"({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hostname": "made",
      "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                 {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                 {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                  "options": ["newinstance", "ptmxmode=0666"]}],
      "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"}]},
      "process": )" + ProcessOf(script, more) +
                         "}";
    return sandbox_->CreateContainer(request_, container_);
  }

  static std::string ProcessOf(const std::string& script, const std::string& more = "") {
    return R"({"args": ["/bin/sh", "-c", ")" + script + R"("], "cwd": "/",
      "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0})" +
           more + "}";
  }

  /// The status with which it has ended, or ends now.
  static uint32_t End(const FakeProcessContext& process) {
    return process.bound->Wait(kLimit).value().code();
  }

  std::string bundle_;
  // gantry-init leaves the processes that it makes to who has started it.
  FakeSandboxContext context_{Orphans::kAdopted};
  FakeContainerContext container_{"c1"};
  ContainerRequest request_;
  std::unique_ptr<SandboxBackend> backend_;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(PlainTest, RunsItsProgram) {
  const ClientStreams client = container_.process.OpenStreams().value();
  const auto made = Create("busybox hostname; exit 7");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(container_.process.bound->Ended()) << "it waits for its Start";
  EXPECT_FALSE((*made)->HasStarted().value());
  ASSERT_TRUE((*made)->Start());
  EXPECT_TRUE((*made)->HasStarted().value());
  EXPECT_TRUE((*made)->Start()) << "again";
  EXPECT_EQ(End(container_.process), 7U);
  EXPECT_EQ(ReadStream(client.out), "made\n");
  EXPECT_TRUE((*made)->Delete());
  EXPECT_TRUE(context_.stored.empty());
}

TEST_F(PlainTest, StartsInTheNextEngine) {
  const ClientStreams client = container_.process.OpenStreams().value();
  auto made = Create("busybox echo there");
  ASSERT_TRUE(made) << made.error().message;
  made->reset();
  sandbox_.reset();
  context_.RestartEngine();
  container_.RestartEngine();
  sandbox_ = backend_->RecoverSandbox({}, context_, context_.blob).value();
  const auto found = sandbox_->RecoverContainer(request_, container_, container_.blob);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE((*found)->HasStarted().value());
  ASSERT_TRUE((*found)->Start());
  EXPECT_EQ(End(container_.process), 0U);
  EXPECT_EQ(ReadStream(client.out), "there\n");
}

TEST_F(PlainTest, AbortsWhatWasNeverMade) {
  EXPECT_EQ(sandbox_->RecoverContainer(request_, container_, "").error().code, Code::kAborted);
}

TEST_F(PlainTest, RunsAnExecInItsContainerOnATerminal) {
  const auto made = Create("exec busybox sleep 1000");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->Start());
  FakeProcessContext process("c1", "x1");
  process.stdio.terminal = true;
  ExecRequest request;
  request.id = process.exec();
  request.process_json =
      ProcessOf("busybox hostname; busybox tty; exit 3", R"(, "terminal": true)");
  request.terminal = true;
  const auto exec = (*made)->Exec(request, process);
  ASSERT_TRUE(exec) << exec.error().message;
  EXPECT_EQ(process.bound, nullptr) << "nothing runs yet";
  const Status started = (*exec)->Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(End(process), 3U);
  const std::string said = ReadStream(process.console);
  EXPECT_TRUE(said.starts_with("made\r\n/dev/")) << said;
  EXPECT_TRUE((*exec)->Delete());
  EXPECT_FALSE(container_.process.bound->Ended()) << "that is the container's";
  EXPECT_TRUE((*made)->Delete());
  EXPECT_EQ(End(container_.process), 137U);
}

TEST_F(PlainTest, SaysWhichProgramIsNotThere) {
  const auto made = Create("x", R"(, "args": ["/no/such/program"])");
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_NE(made.error().message.find("/no/such/program"), std::string::npos);
  EXPECT_TRUE(context_.stored.empty());
}

TEST_F(PlainTest, RefusesWhoCouldMakeDevicesWithoutACgroup) {
  const auto made = Create("exit 0", R"(, "capabilities": {"bounding": ["CAP_MKNOD"]})");
  EXPECT_EQ(container_.made_cgroups, CgroupDevices::kOfSpec);
  EXPECT_EQ(made.error().code, Code::kUnimplemented);
  EXPECT_NE(made.error().message.find("CAP_MKNOD"), std::string::npos);
  EXPECT_TRUE(context_.asked.empty());
}

}  // namespace
