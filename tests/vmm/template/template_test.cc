// SPDX-License-Identifier: Apache-2.0
//
// Machines of a template, with a real QEMU, gantry-vsock and agent: one that has waited, one that
// is restored when it is wanted, and what each of them has of its own.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>

#include "core/os/fs.h"
#include "plugins/vmm/machine/canary.h"
#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/protocol/reports.h"
#include "plugins/vmm/template/ready_pool.h"
#include "plugins/vmm/template/template_store.h"
#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/test_image.h"

namespace gantry::vmm {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr const char* kHandler = "vmm";
constexpr const char* kDisk = "rootdisk";
constexpr const char* kBundle = "/run/gantry/bundle";
constexpr const char* kSpec =
    R"({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"args": ["/bin/sh", "-c",
        "hostname; cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid; date +%s"],
        "env": ["PATH=/bin"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                   {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                    "options": ["newinstance", "ptmxmode=0666"]}],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}]}})";

Result<UniqueFd> OpenProgram(std::string_view /*name*/) {
  UniqueFd program(open(GANTRY_VSOCK, O_RDONLY | O_CLOEXEC));
  return program ? Result<UniqueFd>(std::move(program))
                 : Result<UniqueFd>(FailErrno(errno, "open '{}'", GANTRY_VSOCK));
}

int64_t Seconds() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1);
}

/// What a guest says of itself.
struct Said {
  std::string hostname;
  std::string boot_id;
  std::string random;
  int64_t time = 0;
};

class Templates : public testing::Test {
 protected:
  /// A pod's machine, with its own context.
  struct Pod {
    FakeSandboxContext context;
    std::unique_ptr<Machine> machine;
    std::chrono::milliseconds took{0};
    int64_t before = 0;
  };

  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "whoever gives processes users of their own is root";
    }
    if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
      GTEST_SKIP() << image.why_not;
    }
    ASSERT_EQ(chmod(folder_.path().c_str(), 0711), 0);
    options_.directory = folder_.path() + "/v";
    options_.boot_timeout = std::chrono::minutes(3);
    options_.kernel = TestImage::Get().kernel;
    options_.initrd = TestImage::Get().initrd;
    options_.templates = 1;
    means_.open_program = OpenProgram;
    means_.accelerator = [](const VmmOptions& options, Deadline) {
      return Decide(options, TestImage::Get().acceleration);
    };
  }

  void TearDown() override {
    LetPoolGo();
    RemoveTemplates(options_.directory);
    const auto mounts = mount::ListMounts(folder_.path());
    ASSERT_TRUE(mounts);
    EXPECT_TRUE(mounts->empty()) << mounts->front().path;
    EXPECT_EQ(maker_.Alive(), 0U);
  }

  /// After the first it makes no other.
  void MakePool() {
    constexpr std::chrono::minutes kLong{60};
    pool_ = std::make_unique<ReadyPool>(
        maker_, means_, std::vector<TemplateHandler>{{.name = kHandler, .options = options_}},
        PoolTimes{.quiet = kLong, .patience = kLong});
    means_.ready_vms = pool_.get();
  }

  void LetPoolGo() {
    means_.ready_vms = nullptr;
    pool_.reset();
  }

  bool AwaitReady() {
    return pool_->pool_for_test().AwaitForTest(
        [](const auto& counts) { return CountIn(counts, "warm_ready") == 1; },
        std::chrono::minutes(3));
  }

  static uint64_t CountIn(const std::vector<BackendCount>& counts, const std::string& name) {
    for (const BackendCount& one : counts) {
      if (one.name == name) {
        return one.value;
      }
    }
    return 0;
  }

  std::unique_ptr<Pod> Start(const std::string& name) {
    auto pod = std::make_unique<Pod>();
    pod->before = Seconds();
    MachineRequest request;
    request.id = name;
    request.options = options_;
    request.directory = options_.directory + "/" + name;
    request.size = StartSize(options_, SizeOfNode(), {});
    request.set_up.hostname = name;
    request.disks = {{.serial = kDisk, .path = TestImage::Get().root_disk, .read_only = true}};
    const auto begin = steady_clock::now();
    auto machine = Machine::Start(pod->context, means_, std::move(request), Events(name), Soon());
    pod->took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
    EXPECT_TRUE(machine) << machine.error().message << testing::PrintToString(pod->context.log);
    pod->machine = machine ? std::move(*machine) : nullptr;
    return pod;
  }

  MachineEvents Events(const std::string& name) {
    MachineEvents events;
    events.exited = [this, name](const AgentExit&) {
      const std::lock_guard lock(mutex_);
      ++exits_[name];
      changed_.notify_all();
    };
    return events;
  }

  /// Of a container in it.
  Said Ask(Machine& machine) {
    const auto attached =
        machine.Call(protocol::Attach{.mounts = {{.type = "ext4",
                                                  .source = {},
                                                  .serial = kDisk,
                                                  .target = std::string(kBundle) + "/rootfs",
                                                  .options = {"ro"}}},
                                      .wait_ms = 60'000},
                     Soon());
    EXPECT_TRUE(attached) << attached.error().message << machine.Console();
    const std::string token = machine.streams().Expect().value();
    const auto created = machine.Call(
        protocol::CreateContainer{
            .container = "c", .bundle = kBundle, .spec_json = kSpec, .streams = {.output = token}},
        Soon());
    EXPECT_TRUE(created) << created.error().message;
    auto out = machine.streams().Take(token, Soon());
    EXPECT_TRUE(out) << out.error().message;
    EXPECT_TRUE(machine.Call(protocol::Start{.container = "c", .exec = ""}, Soon()));
    return out ? Parse(ReadStream(*out)) : Said();
  }

  static Said Parse(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
      lines.push_back(text.substr(at, end - at));
    }
    EXPECT_EQ(lines.size(), 4U) << text;
    lines.resize(4);
    return {lines[0], lines[1], lines[2], lines[3].empty() ? 0 : std::stoll(lines[3])};
  }

  void ExpectItsOwn(Pod& pod, const std::string& name, Said& said) {
    said = Ask(*pod.machine);
    EXPECT_EQ(said.hostname, name);
    EXPECT_EQ(said.boot_id.size(), 36U);
    EXPECT_GE(said.time, pod.before);
    EXPECT_LE(said.time, Seconds());
  }

  os::TempDir folder_ = os::TempDir::Create("/tmp/gvt-").value();
  FakeSandboxContext maker_;
  MachineMeans means_;
  VmmOptions options_;
  std::unique_ptr<ReadyPool> pool_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> exits_;
};

TEST_F(Templates, MachinesOfOneAreStrangers) {
  MakePool();
  ASSERT_TRUE(AwaitReady()) << testing::PrintToString(maker_.log);
  auto waited = Start("waited");
  ASSERT_TRUE(waited->machine);
  EXPECT_THAT(waited->context.asked, testing::IsEmpty()) << "nothing was started for it";
  auto restored = Start("restored");
  ASSERT_TRUE(restored->machine);
  Said first;
  ASSERT_NO_FATAL_FAILURE(ExpectItsOwn(*waited, "waited", first));
  EXPECT_THAT(restored->context.Tags(), testing::ElementsAre("vsock", "vmm"));
  Said second;
  ASSERT_NO_FATAL_FAILURE(ExpectItsOwn(*restored, "restored", second));
  EXPECT_NE(first.boot_id, second.boot_id);
  EXPECT_NE(first.random, second.random);
  for (const auto& pod : {waited.get(), restored.get()}) {
    EXPECT_TRUE(pod->machine->Shutdown(std::chrono::minutes(1)));
    EXPECT_EQ(pod->machine->process()->Ended().value().raw, 0) << "its guest has powered off";
  }
  LetPoolGo();
  auto booted = Start("booted");
  ASSERT_TRUE(booted->machine);
  EXPECT_TRUE(booted->machine->Shutdown(std::chrono::milliseconds(0)));
  std::printf("ready %lld ms, restored %lld ms, booted %lld ms\n",
              static_cast<long long>(waited->took.count()),
              static_cast<long long>(restored->took.count()),
              static_cast<long long>(booted->took.count()));
}

TEST_F(Templates, TheNextEngineFindsOneThatWasTakenAndTheTemplate) {
  MakePool();
  ASSERT_TRUE(AwaitReady()) << testing::PrintToString(maker_.log);
  auto pod = Start("pod");
  ASSERT_TRUE(pod->machine);
  const std::string blob = pod->machine->Save();
  pod->machine.reset();
  LetPoolGo();
  pod->context.RestartEngine();
  MachineRequest request;
  request.id = "pod";
  request.options = options_;
  request.directory = options_.directory + "/pod";
  // The fake keeper knows what it has spawned itself.
  auto found = Machine::Recover(maker_, means_, std::move(request), blob, Events("pod"));
  ASSERT_TRUE(found) << found.error().message;
  pod->machine = std::move(*found);
  Said said;
  ASSERT_NO_FATAL_FAILURE(ExpectItsOwn(*pod, "pod", said));
  EXPECT_EQ(ListDirectory(TemplateStore(options_.directory).folder())->size(), 1U);
  EXPECT_TRUE(pod->machine->Shutdown(std::chrono::milliseconds(0)));
}

TEST_F(Templates, OneThatCannotBeRestoredIsBootedInstead) {
  MakePool();
  ASSERT_TRUE(AwaitReady()) << testing::PrintToString(maker_.log);
  auto waited = Start("waited");
  ASSERT_TRUE(waited->machine);
  // It is read when one is restored: this one is no state of QEMU's.
  const TemplateStore store(options_.directory);
  const auto names = ListDirectory(store.folder());
  ASSERT_TRUE(names && names->size() == 1);
  const std::string state = store.folder() + "/" + names->front() + "/state";
  struct stat info{};
  ASSERT_EQ(stat(state.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  EXPECT_EQ(info.st_mode & 0777U, 0400U) << "a machine's memory is nobody's to read";
  ASSERT_TRUE(WriteFile(state, "broken", 0400));
  auto booted = Start("booted");
  ASSERT_TRUE(booted->machine);
  EXPECT_TRUE(booted->context.WaitForLog("it is booted"));
  EXPECT_TRUE(booted->machine->Shutdown(std::chrono::milliseconds(0)));
  EXPECT_TRUE(waited->machine->Shutdown(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace gantry::vmm
