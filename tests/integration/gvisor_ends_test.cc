// SPDX-License-Identifier: Apache-2.0
//
// Ends in a sandbox: of containers that begin and end at once, of the sentry, of a gofer, and
// how each is told.
#include <signal.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include <gmock/gmock.h>

#include <gantry/protowire.h>

#include "core/rpc/blocking_client.h"
#include "tests/harness/events.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;

class GvisorEnds : public GvisorTest {
 protected:
  /// `count` runs of `exit 3`, a few at a time.
  void ExpectEach3(int count, const Words& flags) {
    constexpr size_t kSandboxesAtOnce = 4;
    std::deque<Program> running;
    for (int i = 0; i < count || !running.empty(); ++i) {
      if (i < count) {
        running.push_back(StartCtr(
            node(), RunWords(flags, Id("-" + std::to_string(i)), {"sh", "-c", "exit 3"}), {}));
      }
      if (running.size() == kSandboxesAtOnce || i >= count) {
        EXPECT_EQ(running.front().Wait(), 3) << running.front().err();
        running.pop_front();
      }
    }
  }

  static Words Joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static void KillOne(const std::vector<HostProcess>& found) {
    ASSERT_EQ(found.size(), 1U) << Describe(found);
    kill(found[0].pid, SIGKILL);
  }

  /// Once, and with 137.
  static void ExpectKilled(const std::vector<Event>& events, const std::string& process) {
    std::vector<std::string> statuses;
    for (const Event& event : events) {
      if (event.topic == "/tasks/exit" && event.Field("id") == process) {
        statuses.push_back(event.Field("exit_status"));
      }
    }
    EXPECT_THAT(statuses, ElementsAre("137")) << process;
  }

  static void ExpectNoRunsc(const std::string& id) {
    EXPECT_TRUE(Eventually([&] {
      return RunscsOf(id, "runsc-sandbox").empty() && RunscsOf(id, "runsc-gofer").empty();
    })) << Describe(RunscsOf(id, "runsc-sandbox"))
        << Describe(RunscsOf(id, "runsc-gofer"));
  }
};

TEST_F(GvisorEnds, AtOnceGiveTheirCodeAHundredTimes) { ExpectEach3(100, {"--rm"}); }

TEST_F(GvisorEnds, AtOnceGiveTheirCodeInAPod) {
  const std::string root = Id("-root");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  ExpectEach3(50, Joined({"--rm"}, AsFurther(root)));
  Remove(root);
}

TEST_F(GvisorEnds, OfIdsThatBeginAlikeAreToldApart) {
  const std::string one = Id("-1");
  const std::string ten = Id("-10");
  Program first = StartScript({}, one, "sleep 1000");
  Program second = StartScript({}, ten, "sleep 1000");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", one}).status, 0);
  EXPECT_EQ(first.Wait(), 137) << first.err();
  EXPECT_EQ(Exec(ten, {"echo", "on"}).out, "on\n");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", ten}).status, 0);
  EXPECT_EQ(second.Wait(), 137) << second.err();
}

TEST_F(GvisorEnds, OfIdsThatBeginAlikeAreToldApartInAPod) {
  const std::string root = Id("-1");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  Program one = StartScript(AsFurther(root), Id("-11"), "sleep 1000");
  Program two = StartScript(AsFurther(root), Id("-110"), "sleep 1000");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", Id("-11")}).status, 0);
  EXPECT_EQ(one.Wait(), 137) << one.err();
  EXPECT_EQ(Exec(Id("-110"), {"echo", "on"}).out, "on\n");
  EXPECT_EQ(Exec(root, {"echo", "on"}).out, "on\n");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", Id("-110")}).status, 0);
  EXPECT_EQ(two.Wait(), 137) << two.err();
  Remove(root);
}

TEST_F(GvisorEnds, AreToldInOrderInAPod) {
  Events events(node());
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  ASSERT_EQ(RunContainer(Joined({"--rm"}, AsFurther(root)), further, {"sh", "-c", "exit 7"}).status,
            7);
  Remove(root);
  for (const std::string& id : {further, root}) {
    EXPECT_THAT(Events::Topics(events.Until("/tasks/delete", id)),
                ElementsAre("create", "start", "exit", "delete"));
  }
}

TEST_F(GvisorEnds, OfTheSentryEndAllInIt) {
  Events events(node());
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  Program first = StartScript(AsRoot(root), root, "sleep 1000");
  // Not removed by its own ctr: that of the exec leaves its fifos where the task is gone first.
  StartDetached(further, {"sleep", "1000"}, AsFurther(root));
  Program exec = StartExec(further, "sleep 1000");
  ASSERT_NO_FATAL_FAILURE(KillOne(RunscsOf(root, "runsc-sandbox")));
  for (Program* program : {&first, &exec}) {
    EXPECT_EQ(program->Wait(), 137) << program->err();
  }
  Remove(further);
  const auto of_further = events.Until("/tasks/delete", further);
  ASSERT_FALSE(of_further.empty());
  ExpectKilled(of_further, further);
  ExpectKilled(of_further, of_further[2].Field("exec_id"));
  ExpectKilled(events.Until("/tasks/delete", root), root);
  ExpectNoRunsc(root);
  ExpectNoRunsc(further);
}

TEST_F(GvisorEnds, OfASentryThatHangsIsTheEndOfItsPod) {
  const Words soon = WithOptions("timeout_ms = 1000\n");
  for (const bool is_removal : {true, false}) {
    const std::string round = is_removal ? "-removed" : "-killed";
    const std::string root = Id(round);
    const std::string ended = Id(round + "-ended");
    const std::string running = Id(round + "-running");
    StartDetached(root, {"sleep", "1000"}, Joined(AsRoot(root), soon));
    StartDetached(ended, {"sh", "-c", "exit 3"}, Joined(AsFurther(root), soon));
    StartDetached(running, {"sleep", "1000"}, Joined(AsFurther(root), soon));
    ASSERT_TRUE(WaitForState(ended, "STOPPED"));
    const auto sentries = RunscsOf(root, "runsc-sandbox");
    ASSERT_EQ(sentries.size(), 1U);
    kill(sentries[0].pid, SIGSTOP);
    EXPECT_NE(Ctr({"tasks", "kill", "-s", "TERM", running}).status, 0);
    EXPECT_EQ(kill(sentries[0].pid, 0), 0) << "a TERM may be in vain";
    if (is_removal) {
      Remove(ended);
    } else {
      EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", running}).status, 0);
    }
    for (const std::string& id : {running, root}) {
      EXPECT_TRUE(WaitForState(id, "STOPPED"));
      const Output removed = Ctr({"tasks", "rm", id});
      EXPECT_NE(removed.err.find("exit code 137"), std::string::npos) << removed.Text();
      EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
    }
    if (!is_removal) {
      Remove(ended);
    }
    ExpectNoRunsc(root);
  }
}

TEST_F(GvisorEnds, OfOneThatStandsStillComeWhenItIsKilled) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  StartDetached(further, {"sleep", "1000"}, AsFurther(root));
  for (const std::string& id : {further, root}) {
    ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
    EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
    EXPECT_TRUE(WaitForState(id, "STOPPED"));
  }
  Remove(further);
  Remove(root);
}

TEST_F(GvisorEnds, OfAGoferEndItsContainerAlone) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  Program program = StartScript(AsFurther(root), further, "sleep 1000");
  ASSERT_NO_FATAL_FAILURE(KillOne(RunscsOf(further, "runsc-gofer")));
  EXPECT_EQ(program.Wait(), 137) << program.err();
  ExpectNoRunsc(further);
  EXPECT_EQ(Exec(root, {"echo", "on"}).out, "on\n");
  const std::string next = Id("-next");
  Program again = StartScript(AsFurther(root), next, "sleep 1000");
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", next}).status, 0);
  EXPECT_EQ(again.Wait(), 137) << again.err();
  Remove(root);
}

TEST_F(GvisorEnds, OfTheRootsGoferEndThePod) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  Program first = StartScript(AsRoot(root), root, "sleep 1000");
  Program second = StartScript(AsFurther(root), further, "sleep 1000");
  ASSERT_NO_FATAL_FAILURE(KillOne(RunscsOf(root, "runsc-gofer")));
  EXPECT_EQ(first.Wait(), 137) << first.err();
  EXPECT_EQ(second.Wait(), 137) << second.err();
  ExpectNoRunsc(root);
  ExpectNoRunsc(further);
}

TEST_F(GvisorEnds, WithoutContainerdKeepTheirCodeInAPod) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  const std::string asked = settings().root + "/" + Id("-asked");
  fs::create_directory(asked);
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  StartDetached(
      further, {"sh", "-c", "until [ -e /asked/end ]; do sleep 0.05; done; exit 7"},
      Joined(AsFurther(root), {"--mount", "type=bind,src=" + asked + ",dst=/asked,options=rbind"}));
  node().KillContainerd();
  WriteText(asked + "/end", "");
  EXPECT_TRUE(
      Eventually([&] { return fs::exists(node().bundles() + "/" + further + "/init.exit"); }));
  ASSERT_EQ(node().StartContainerd(), "");
  ASSERT_TRUE(WaitForState(further, "STOPPED"));
  const Output removed = Ctr({"tasks", "rm", further});
  EXPECT_NE(removed.err.find("exit code 7"), std::string::npos) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", further}).status, 0);
  Remove(root);
}

TEST_F(GvisorEnds, AreToldToThreeHundredWhoWait) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const auto sockets = ListFolder(settings().run_dir + "/s");
  ASSERT_EQ(sockets.size(), 1U);
  ProtoWriter request;
  request.Text(1, id);
  const auto call = [&](rpc::BlockingClient& client) {
    return client.Send("containerd.task.v3.Task", "Wait", request.str(), kDeadline,
                       {{std::string(rpc::kNamespaceKey), settings().ns}});
  };
  std::vector<std::pair<rpc::BlockingClient, uint32_t>> waits;
  for (int i = 0; i < 300; ++i) {
    auto client = rpc::BlockingClient::Connect(settings().run_dir + "/s/" + sockets[0]);
    ASSERT_TRUE(client) << client.error().message;
    const auto stream = call(*client);
    ASSERT_TRUE(stream) << stream.error().message;
    waits.emplace_back(std::move(*client), *stream);
  }
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  for (auto& [client, stream] : waits) {
    const auto answer = client.Receive(stream, kDeadline);
    ASSERT_TRUE(answer) << answer.error().message;
    ProtoReader in(*answer);
    ASSERT_TRUE(in.Next());
    EXPECT_EQ(in.number(), 137U);
  }
  waits.clear();
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
