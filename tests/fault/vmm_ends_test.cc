// SPDX-License-Identifier: Apache-2.0
//
// Whatever of a machine ends, and whenever: its VMM, its vsock device, its virtiofsd, its guest.
// What runs in it ends with 137 and never with 0, nothing is left, and others notice nothing.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/fault/harness/ctr_fault_test.h"
#include "tests/harness/host.h"
#include "tests/harness/leftovers.h"
#include "tests/harness/vmm_test.h"

namespace gantry::fault {
namespace {

using e2e::HostProcess;
using e2e::Output;
using e2e::Program;
using testing::HasSubstr;

constexpr int kKilled = 137;
// The container's own /proc has that file for reading alone.
constexpr const char* kPanic = "mkdir /all; mount -t proc all /all; echo c >/all/sysrq-trigger";

class FaultVmmEnds : public CtrFaultTest {
 protected:
  void SetUp() override {
    if (!settings().vmm()) {
      GTEST_SKIP() << "is about the vmm backend";
    }
    CtrFaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    known_ = e2e::WhatIsThere(node(), Id());
    witness_pids_.clear();
    const std::vector<std::string> folders = e2e::ListFolder(e2e::VmmFolder(settings()));
    witness_folders_ = {folders.begin(), folders.end()};
    for (const char* const program : {e2e::kQemu, e2e::kVsock, e2e::kVirtiofsd}) {
      for (const HostProcess& one : e2e::HelpersCalled(node(), program)) {
        witness_pids_.insert(one.pid);
      }
    }
  }

  void TearDown() override {
    CtrFaultTest::TearDown();
    if (!IsSkipped()) {
      e2e::ExpectNoMachine(node());
    }
  }

  /// Of the machine that the test has made; 0: it has none.
  pid_t Helper(std::string_view program) const {
    for (const HostProcess& one : e2e::HelpersCalled(node(), program)) {
      if (!witness_pids_.contains(one.pid)) {
        return one.pid;
      }
    }
    return 0;
  }

  void Kill(std::string_view program) const {
    const pid_t pid = Helper(program);
    ASSERT_GT(pid, 0) << program << " does not run";
    ASSERT_EQ(kill(pid, SIGKILL), 0);
  }

  static Output Run(const std::string& id, const e2e::Words& flags = {}) {
    e2e::Words all = {"-d"};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunContainer(all, id, {"sleep", "100000"}, {}, 2 * e2e::kLong);
  }

  /// A container with an exec whose output flows, when `end` is called.
  void ExpectAllEndOver(const std::string& suffix, const std::function<void()>& end,
                        const e2e::Words& flags = {}) {
    const std::string id = Id(suffix);
    const Output run = Run(id, flags);
    ASSERT_EQ(run.status, 0) << run.Text();
    Program exec(node().CtrWords(
                     ExecWords({}, id, {"sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); done"})),
                 {});
    ASSERT_TRUE(exec.ReadUntil("100\n")) << exec.err();
    ASSERT_NO_FATAL_FAILURE(end());
    EXPECT_EQ(exec.Wait(), kKilled) << exec.err();
    ExpectStopped(id);
  }

  void ExpectStopped(const std::string& id) {
    EXPECT_TRUE(WaitForState(id, "STOPPED")) << FindTask(id).state;
    const Output removed = Ctr({"tasks", "rm", id});
    EXPECT_THAT(removed.err, HasSubstr("non-zero exit code " + std::to_string(kKilled)))
        << removed.Text();
    EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
    ExpectNoTrace(id);
  }

  void ExpectNoTrace(const std::string& id) {
    for (const char* const program : {e2e::kQemu, e2e::kVsock, e2e::kVirtiofsd}) {
      EXPECT_TRUE(e2e::Eventually([&] { return Helper(program) == 0; })) << program;
    }
    EXPECT_EQ(e2e::Leftovers(node(), {}, id, known_), "");
  }

  /// `program` is killed while the machine boots: as soon as it is there, and `when`.
  void BootKilled(const std::string& id, std::string_view program,
                  const std::function<bool()>& when) {
    bool killed = false;
    std::jthread other([&](const std::stop_token& stop) {
      while (!stop.stop_requested() && !(Helper(program) != 0 && when())) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const pid_t pid = Helper(program);
      killed = pid != 0 && kill(pid, SIGKILL) == 0;
    });
    const Output run = Run(id);
    other.request_stop();
    other.join();
    EXPECT_TRUE(killed) << run.Text();
    // The boot may have been over by then.
    if (run.status == 0) {
      ExpectStopped(id);
    } else {
      Forget(id);
      ExpectNoTrace(id);
    }
  }

  /// That of the machine that boots has said something.
  bool GuestSpeaks() const {
    const std::string all = e2e::VmmFolder(settings());
    return std::ranges::any_of(e2e::ListFolder(all), [&](const std::string& name) {
      return !witness_folders_.contains(name) &&
             !e2e::ReadText(all + "/" + name + "/vm/console").empty();
    });
  }

  std::set<std::string> known_;
  std::set<pid_t> witness_pids_;
  std::set<std::string> witness_folders_;
};

// The agent is the guest's first process: its end is the kernel's panic, and so is the last of
// these.
TEST_F(FaultVmmEnds, OfEachPartAreThoseOfItsContainers) {
  for (const char* const program : {e2e::kQemu, e2e::kVsock, e2e::kVirtiofsd}) {
    SCOPED_TRACE(program);
    ExpectAllEndOver("-" + std::string(program), [&] { Kill(program); });
  }
  ExpectAllEndOver("-panics",
                   [this] {
                     Program panics(
                         node().CtrWords(ExecWords({}, Id("-panics"), {"sh", "-c", kPanic})), {});
                     EXPECT_NE(panics.Wait(), 0);
                   },
                   {"--cap-add", "CAP_SYS_ADMIN"});
}

// While there is no engine; and while one takes the machine up.
TEST_F(FaultVmmEnds, WhileThereIsNoEngine) {
  const std::string id = Id("-meanwhile");
  ASSERT_EQ(Run(id).status, 0);
  KillEngine([this] { Kill(e2e::kVsock); });
  ExpectStopped(id);
}

TEST_F(FaultVmmEnds, WhileItBoots) {
  int number = 0;
  for (const char* const program : {e2e::kQemu, e2e::kVsock, e2e::kVirtiofsd}) {
    SCOPED_TRACE(program);
    const std::string id = Id("-boot" + std::to_string(++number));
    BootKilled(id + "a", program, [] { return true; });
    BootKilled(id + "b", program, [this] { return GuestSpeaks(); });
  }
}

// The witness, which is a pod of its own, counts on; what is asked of others is answered.
TEST_F(FaultVmmEnds, OneThatStandsStillHoldsUpNobodyElse) {
  const std::string silent = Id("-silent");
  const std::string other = Id("-other");
  ASSERT_EQ(Run(silent).status, 0);
  const pid_t vmm = Helper(e2e::kQemu);
  ASSERT_EQ(kill(vmm, SIGSTOP), 0);
  std::vector<std::unique_ptr<Program>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<Program>(node().CtrWords(ExecWords({}, silent, {"true"})),
                                                Program::Options{}));
  }
  const Output run = Run(other);
  EXPECT_EQ(run.status, 0) << run.Text();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(E2eTest::Exec(other, {"sh", "-c", "exit 6"}).status, 6);
  }
  EXPECT_EQ(Ctr({"tasks", "rm", "-f", other}).status, 0);
  EXPECT_EQ(Ctr({"containers", "rm", other}).status, 0);
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", silent}).status, 0);
  for (const auto& one : waiting) {
    EXPECT_NE(one->Wait(), 0) << "a guest that stands still has run it";
  }
  ExpectStopped(silent);
}

}  // namespace
}  // namespace gantry::fault
