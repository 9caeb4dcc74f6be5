// SPDX-License-Identifier: Apache-2.0
//
// The end of a machine, whatever of it ends first: all that runs in it ends with 137, once, and
// nothing is left. And of memory, which is told before.
#include <signal.h>

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>

#include "tests/harness/events.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::ElementsAre;

class VmmEnds : public VmmTest {
 protected:
  static std::vector<std::string> StatusesOf(const std::vector<Event>& events,
                                             const std::string& process) {
    std::vector<std::string> statuses;
    for (const Event& event : events) {
      if (event.topic == "/tasks/exit" && event.Field("id") == process) {
        statuses.push_back(event.Field("exit_status"));
      }
    }
    return statuses;
  }

  /// K1: a container and an exec of it, when `program` is killed.
  void ExpectAllEndWith(std::string_view program) {
    Events events(node());
    const std::string id = Id();
    Program init = StartScript(id, "sleep 100000");
    Program exec = StartExec(id, "sleep 100000");
    ASSERT_NO_FATAL_FAILURE(KillHelper(program));
    EXPECT_EQ(init.Wait(), 137) << init.err();
    EXPECT_EQ(exec.Wait(), 137) << exec.err();
    const auto seen = events.Until("/tasks/delete", id);
    EXPECT_THAT(StatusesOf(seen, id), ElementsAre("137"));
    ExpectNoMachine(node());
    EXPECT_EQ(RunScript("exit 3").status, 3) << "the next one runs";
  }
};

TEST_F(VmmEnds, OfTheVmmAreThoseOfItsContainers) { ExpectAllEndWith(settings().vmm_program()); }

TEST_F(VmmEnds, OfTheVsockDeviceAreThoseOfItsContainers) { ExpectAllEndWith(kVsock); }

TEST_F(VmmEnds, OfVirtiofsdAreThoseOfItsContainers) { ExpectAllEndWith(kVirtiofsd); }

TEST_F(VmmEnds, OfAMachineThatStandsStillComeWhenItIsKilled) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const auto machines = Helpers(settings().vmm_program());
  ASSERT_EQ(machines.size(), 1U);
  ASSERT_EQ(kill(machines.front().pid, SIGSTOP), 0);
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
  ExpectNoMachine(node());
}

TEST_F(VmmEnds, ForWantOfMemoryAreToldBefore) {
  Events events(node());
  const std::string id = Id();
  const Output output = RunContainer({"--rm", "--memory-limit", "33554432"}, id,
                                     {"sh", "-c", "exec tail /dev/zero"}, {}, kLong);
  EXPECT_EQ(output.status, 137) << output.Text();
  const auto topics = Events::TopicsOnce(events.Until("/tasks/delete", id));
  const auto oom = std::ranges::find(topics, "oom");
  const auto exit = std::ranges::find(topics, "exit");
  EXPECT_NE(oom, topics.end());
  EXPECT_LT(oom - topics.begin(), exit - topics.begin());
}

// U1, K9: stops of all kinds at once.
TEST_F(VmmEnds, AskedForTwiceAtOnceAreOne) {
  for (int round = 0; round < 3; ++round) {
    const std::string id = Id("-" + std::to_string(round));
    StartDetached(id, {"sleep", "100000"});
    std::thread other([&] { Ctr({"tasks", "rm", "-f", id}); });
    Ctr({"tasks", "kill", "-s", "KILL", id});
    other.join();
    Remove(id);
    ExpectNoMachine(node());
  }
}

}  // namespace
}  // namespace gantry::e2e
