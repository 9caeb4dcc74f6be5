// SPDX-License-Identifier: Apache-2.0
//
// What ends is gone: its streams, its processes, its mounts. Nobody may hold on to them, the
// backend neither.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>

#include <gantry/format.h>

#include "tests/contract/harness/fifo_reader.h"
#include "tests/contract/harness/inside.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// On a busy machine; a rule that is not met takes that long.
const e2e::Duration kSettled = e2e::Bound(std::chrono::seconds(10));

/// Who has this file open, as "NAME (PID)".
std::vector<std::string> HoldersOf(const std::string& path) {
  std::vector<std::string> holders;
  for (const e2e::HostProcess& process : e2e::Processes([](const auto&) { return true; })) {
    const std::string folder = "/proc/" + std::to_string(process.pid) + "/fd";
    if (process.pid == getpid()) {
      continue;  // It reads.
    }
    for (const std::string& fd : e2e::ListFolder(folder)) {
      std::error_code error;
      if (fs::read_symlink(folder + "/" + fd, error) == path && !error) {
        holders.push_back(process.name + " (" + std::to_string(process.pid) + ")");
        break;
      }
    }
  }
  return holders;
}

class Leftovers : public InsideTest {
 protected:
  static void ExpectNobodyHolds(const FifoReader& out) {
    std::vector<std::string> holders;
    e2e::Eventually([&] { return (holders = HoldersOf(out.path())).empty(); }, kSettled);
    EXPECT_THAT(holders, IsEmpty()) << "they hold the standard output of a process that has ended";
  }

  /// Of this container, as the host sees them.
  static std::vector<pid_t> PidsOf(const Box& box) {
    std::vector<pid_t> pids;
    for (const auto& process : e2e::ProcessesInCgroup(node().cgroup() + "/" + box.id())) {
      pids.push_back(process.pid);
    }
    return pids;
  }

  static std::vector<pid_t> Alive(const std::vector<pid_t>& pids) {
    std::vector<pid_t> alive;
    for (const pid_t pid : pids) {
      if (!e2e::WaitGone(pid, kSettled)) {
        alive.push_back(pid);
      }
    }
    return alive;
  }
};

TEST_P(Leftovers, OfStreamsThereAreNoneWhenTheirProcessHasEnded) {
  FifoReader out(node().root() + "/" + Id() + ".out");
  Box& box = Running({.args = {"sh", "-c", "echo said; exit 3"}, .out = out.path()});
  ASSERT_TRUE(out.ReadUntil("said\n"));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 3U);
  ExpectNobodyHolds(out);
}

TEST_P(Leftovers, OfAnExecsStreamsThereAreNoneWhenItHasEnded) {
  Box& box = Running();
  FifoReader out(node().root() + "/" + Id() + ".exec");
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "echo said; exit 3"}, false, out.path()));
  ASSERT_OK(box.Start("x1"));
  ASSERT_TRUE(out.ReadUntil("said\n"));
  EXPECT_EQ(Got(box.Wait("x1")).exit_status(), 3U);
  ExpectNobodyHolds(out);
}

TEST_P(Leftovers, OfProcessesThereAreNoneWhenAllAreKilled) {
  FifoReader out(node().root() + "/" + Id() + ".ready");
  const std::string script = "sleep 1001 & sleep 1002 & echo ready; exec sleep 1000";
  Box& box = Created({.args = {"sh", "-c", script}, .out = out.path()});
  // A sandbox's own processes are among these, a sentry or a VMM, which may go with the sandbox.
  const std::vector<pid_t> before = PidsOf(box);
  ASSERT_OK(box.Start());
  ASSERT_TRUE(out.ReadUntil("ready"));
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "sleep 1003 & sleep 1004"}));
  ASSERT_OK(box.Start("x1"));
  std::vector<pid_t> since = PidsOf(box);
  std::erase_if(since, [&](pid_t pid) { return std::ranges::contains(before, pid); });
  ASSERT_OK(box.Kill(SIGKILL, "", true));
  EXPECT_EQ(Got(box.Wait("x1")).exit_status(), 137U);
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  EXPECT_THAT(Alive(since), IsEmpty());
  if (!TheSetup().anybodys && IsSupported(backend(), kOwnProcesses)) {
    EXPECT_THAT(Alive(before), IsEmpty());
  }
}

TEST_P(Leftovers, OfAContainerThatWasNotStartedThereAreNoneWhenItIsDeleted) {
  Box& box = Created();
  const std::vector<pid_t> pids = PidsOf(box);
  ASSERT_OK(box.Delete());
  EXPECT_THAT(Alive(pids), IsEmpty());
}

TEST_P(Leftovers, OfMountsThereAreNoneOnTheNode) {
  Box& box = Announced();
  // As on a node whose mounts are shared: what is mounted in a copy of them shows here, too,
  // where the copy is not made a slave or private first.
  const std::string bundle = box.bundle();
  ASSERT_EQ(::mount(bundle.c_str(), bundle.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::mount(nullptr, bundle.c_str(), nullptr, MS_SHARED, nullptr), 0);
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  EXPECT_THAT(e2e::MountsBelow(bundle), ElementsAre(bundle + "/rootfs", bundle))
      << "mounts of the container are the node's";
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  for (const std::string& point : e2e::MountsBelow(bundle)) {
    EXPECT_EQ(point, bundle) << "it is still mounted";
    EXPECT_EQ(umount2(point.c_str(), MNT_DETACH), 0);
  }
}

/// The cgroups of a process and all above them, as folders of the host.
std::vector<std::string> CgroupsOf(pid_t pid) {
  std::vector<std::string> folders;
  std::istringstream lines(e2e::ReadText("/proc/" + std::to_string(pid) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    fs::path path = line.substr(line.find(':', line.find(':') + 1) + 1);
    for (; path.has_relative_path(); path = path.parent_path()) {
      for (const std::string& folder : e2e::CgroupFolders(path)) {
        folders.push_back(folder);
      }
    }
  }
  return folders;
}

class Limits : public InsideTest {};

TEST_P(Limits, OfItsSpecAreThoseOfItsCgroups) {
  constexpr const char* kMost = "71";
  Json spec;
  spec["linux"]["resources"]["pids"]["limit"] = 71;
  const Box* box = Resident(spec);
  if (box == nullptr) {
    GTEST_SKIP() << refusal();
  }
  const auto state = box->State();
  ASSERT_OK(state);
  std::set<std::string> limits;
  for (const std::string& folder : CgroupsOf(static_cast<pid_t>(state->pid()))) {
    for (const std::string& word : Words(e2e::ReadText(folder + "/pids.max"))) {
      limits.insert(word);
    }
  }
  if (limits.contains(kMost)) {
    return;
  }
  // Its processes may be those of a kernel of its own, whose cgroups they are in.
  const auto said =
      ExecSays(*box, "(i=0; while [ $i -lt 90 ]; do sleep 1000 & i=$((i + 1)); done; echo all)");
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(*said, ::testing::HasSubstr("fork: "))
      << "its processes have the limits " << Json(limits).dump()
      << ", its spec has 71 (linux.resources.pids.limit), and 90 more came beside them";
}

/// One that the kernel lets everybody open who may use the device: as mknod(1) takes it. None of
/// those that a sandbox with a kernel of its own has, too (fuse, tun).
std::string DeviceOfTheNode() {
  for (const char* path :
       {"/dev/loop-control", "/dev/loop0", "/dev/btrfs-control", "/dev/autofs"}) {
    struct stat info{};
    if (access(path, R_OK) == 0 && stat(path, &info) == 0) {
      return Format("{} {} {}", S_ISBLK(info.st_mode) ? 'b' : 'c', major(info.st_rdev),
                    minor(info.st_rdev));
    }
  }
  return {};
}

TEST_P(Limits, OfDevicesAreThoseOfItsSpec) {
  const std::string device = DeviceOfTheNode();
  if (device.empty()) {
    GTEST_SKIP() << "not supported: the node has no device that could be tried";
  }
  const Json set = {"CAP_MKNOD"};
  Json spec;
  spec["process"]["capabilities"] = {{"bounding", set}, {"effective", set}, {"permitted", set}};
  spec["linux"]["resources"]["devices"] = {{{"allow", false}, {"access", "rwm"}}};
  // Where the root comes by virtiofs no device can be made in it.
  const auto said = Says(
      "cd /dev; mknod tried " + device +
          "; (: <tried) 2>/dev/null && echo opened || echo refused; (: </dev/null) && echo null",
      spec);
  if (!said) {
    GTEST_SKIP() << refusal();
  }
  EXPECT_THAT(Words(*said), UnorderedElementsAre("refused", "null"))
      << "its spec denies all devices (linux.resources.devices), and this is " << device;
}

INSTANTIATE_CONTRACT(Leftovers);
INSTANTIATE_CONTRACT(Limits);

}  // namespace
}  // namespace gantry::contract
