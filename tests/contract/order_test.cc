// SPDX-License-Identifier: Apache-2.0
//
// Calls that overlap, and the order of events.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;

class Order : public ContractTest {
 protected:
  static Result<Pending<pb::WaitResponse>> BeginWait(const Box& box, const std::string& exec = "") {
    pb::WaitRequest request;
    request.set_id(box.id());
    request.set_exec_id(exec);
    return box.client().Begin<pb::WaitResponse>("Wait", request);
  }

  /// A Create that stands still until `Open`: its stdout has no reader.
  struct SlowCreate {
    std::string fifo;
    std::optional<Pending<pb::CreateTaskResponse>> pending;
    UniqueFd reader;

    void Open() { reader = UniqueFd(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); }
  };

  SlowCreate BeginSlowCreate(const Box& box) {
    SlowCreate slow;
    slow.fifo = box.bundle() + "/out";
    EXPECT_EQ(mkfifo(slow.fifo.c_str(), 0600), 0);
    pb::CreateTaskRequest request = box.CreateRequest();
    request.set_stdout(slow.fifo);
    auto pending = box.client().Begin<pb::CreateTaskResponse>("Create", request);
    EXPECT_OK(pending);
    if (pending) {
      slow.pending.emplace(std::move(*pending));
    }
    // The root file system is mounted before the streams are opened.
    EXPECT_TRUE(e2e::Eventually([&] { return !e2e::MountsBelow(box.bundle()).empty(); }));
    return slow;
  }
};

TEST_P(Order, OfALife) {
  Box& box = Stopped();
  const uint32_t pid = Got(box.State()).pid();
  ASSERT_OK(box.Delete());
  EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
              ElementsAre("create", "start", "exit", "delete"));
  for (const Event& event : node().containerd().EventsOf(box.id())) {
    EXPECT_EQ(event.ns, kNamespace);
    if (event.topic != "/tasks/start") {
      EXPECT_EQ(event.pid, pid) << event.topic;
    }
    if (event.topic == "/tasks/exit" || event.topic == "/tasks/delete") {
      EXPECT_EQ(event.status, 7U) << event.topic;
    }
  }
}

TEST_P(Order, OfAnExec) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "exit 5"}));
  ASSERT_OK(box.Start("x1"));
  ASSERT_OK(box.Wait("x1"));
  EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 5),
              ElementsAre("create", "start", "exec-added(x1)", "exec-started(x1)", "exit(x1)"));
}

TEST_P(Order, OfPauseAndResume) {
  Box& box = Paused();
  ASSERT_OK(box.Resume());
  EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
              ElementsAre("create", "start", "paused", "resumed"));
}

TEST_P(Order, ExecsEndBeforeTheirContainer) {
  Box& box = Running();
  for (const char* exec : {"x1", "x2", "x3"}) {
    ASSERT_OK(box.Exec(exec, {"sleep", "1000"}));
    ASSERT_OK(box.Start(exec));
  }
  ASSERT_OK(box.Kill(SIGKILL));
  ASSERT_OK(box.Wait());
  const auto topics = node().containerd().WaitForTopics(box.id(), 12);
  ASSERT_EQ(topics.size(), 12U);
  EXPECT_EQ(topics.back(), "exit");
}

TEST_P(Order, OfAProgramThatEndsAtOnce) {
  for (int round = 0; round < 5; ++round) {
    Box& box = Running({.args = {"true"}}, "-" + std::to_string(round));
    ASSERT_OK(box.Wait());
    ASSERT_OK(box.Delete());
    EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
                ElementsAre("create", "start", "exit", "delete"));
  }
}

TEST_P(Order, EventsWaitForContainerd) {
  node().containerd().GoAway();
  Box& box = Stopped();
  ASSERT_OK(box.Delete());
  node().containerd().ComeBack();
  EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
              ElementsAre("create", "start", "exit", "delete"));
}

TEST_P(Order, WaitBeforeStart) {
  Box& box = Created({.args = {"sh", "-c", "exit 3"}});
  auto first = BeginWait(box);
  auto second = BeginWait(box);
  ASSERT_OK(box.Start());
  for (auto* pending : {&first, &second}) {
    ASSERT_OK(*pending);
    const auto ended = (*pending)->Get();
    ASSERT_OK(ended);
    EXPECT_EQ(ended->exit_status(), 3U);
    EXPECT_GT(ended->exited_at().seconds(), 1'600'000'000);
  }
}

TEST_P(Order, WaitForAnExecBeforeItsStart) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "exit 3"}));
  auto pending = BeginWait(box, "x1");
  ASSERT_OK(pending);
  ASSERT_OK(box.Start("x1"));
  const auto ended = pending->Get();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 3U);
}

TEST_P(Order, WaitThatIsUnderWayEndsWithDelete) {
  Box& box = Created();
  auto pending = BeginWait(box);
  ASSERT_OK(pending);
  ASSERT_OK(box.Delete());
  // It had a process, which the delete has ended.
  const auto ended = pending->Get();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 128U + SIGKILL);
}

TEST_P(Order, WaitThatIsUnderWayEndsWithAFailedCreate) {
  Box& box = Announced();
  SlowCreate slow = BeginSlowCreate(box);
  auto pending = BeginWait(box);
  ASSERT_OK(pending);
  EXPECT_CODE(slow.pending->Get(), kDeadlineExceeded);
  EXPECT_CODE(pending->Get(), kNotFound);
}

TEST_P(Order, KillDuringCreateIsRefusedAndHarmless) {
  Box& box = Announced();
  SlowCreate slow = BeginSlowCreate(box);
  const Status killed = box.Kill(SIGKILL);
  EXPECT_FALSE(killed.has_value());
  slow.Open();
  EXPECT_OK(slow.pending->Get());
  EXPECT_OK(box.Start());
}

TEST_P(Order, CallsDuringCreateHarmNothing) {
  Box& box = Announced();
  SlowCreate slow = BeginSlowCreate(box);
  EXPECT_CODE(box.Create(), kAlreadyExists);
  EXPECT_OK(box.Connect());
  EXPECT_OK(box.Shutdown());
  // What they answer is up to the moment; that they answer is not.
  IgnoreError(box.State(), "any");
  IgnoreError(box.Stats(), "any");
  IgnoreError(box.Pids(), "any");
  IgnoreError(box.CloseIO(), "any");
  IgnoreError(box.Resize(), "any");
  IgnoreError(box.Kill(SIGKILL, "", true), "any");
  slow.Open();
  EXPECT_OK(slow.pending->Get());
  EXPECT_EQ(Got(box.State()).status(), pb::CREATED);
}

TEST_P(Order, DeleteDuringCreateWaitsForIt) {
  Box& box = Announced();
  SlowCreate slow = BeginSlowCreate(box);
  pb::DeleteRequest request;
  request.set_id(box.id());
  auto deleting = box.client().Begin<pb::DeleteResponse>("Delete", request);
  ASSERT_OK(deleting);
  slow.Open();
  const auto created = slow.pending->Get();
  const auto deleted = deleting->Get();
  EXPECT_OK(created);
  EXPECT_OK(deleted);
  EXPECT_CODE(box.State(), kNotFound);
}

TEST_P(Order, OfManyCreatesOfOneIdOneSucceeds) {
  Box& box = Announced();
  std::vector<Pending<pb::CreateTaskResponse>> all;
  for (int i = 0; i < 8; ++i) {
    auto pending = box.client().Begin<pb::CreateTaskResponse>("Create", box.CreateRequest());
    ASSERT_OK(pending);
    all.push_back(std::move(*pending));
  }
  int created = 0;
  for (auto& pending : all) {
    const auto answer = pending.Get();
    created += answer ? 1 : 0;
    if (!answer) {
      EXPECT_CODE(answer, kAlreadyExists);
    }
  }
  EXPECT_EQ(created, 1);
}

TEST_P(Order, OfManyStartsOneSucceeds) {
  Box& box = Created();
  pb::StartRequest request;
  request.set_id(box.id());
  std::vector<Pending<pb::StartResponse>> all;
  for (int i = 0; i < 8; ++i) {
    auto pending = box.client().Begin<pb::StartResponse>("Start", request);
    ASSERT_OK(pending);
    all.push_back(std::move(*pending));
  }
  int started = 0;
  for (auto& pending : all) {
    const auto answer = pending.Get();
    started += answer ? 1 : 0;
    if (!answer) {
      EXPECT_CODE(answer, kFailedPrecondition);
    }
  }
  EXPECT_EQ(started, 1);
}

TEST_P(Order, OfManyDeletesOneSucceeds) {
  Box& box = Stopped();
  pb::DeleteRequest request;
  request.set_id(box.id());
  std::vector<Pending<pb::DeleteResponse>> all;
  for (int i = 0; i < 8; ++i) {
    auto pending = box.client().Begin<pb::DeleteResponse>("Delete", request);
    ASSERT_OK(pending);
    all.push_back(std::move(*pending));
  }
  int deleted = 0;
  for (auto& pending : all) {
    const auto answer = pending.Get();
    deleted += answer ? 1 : 0;
    if (!answer) {
      EXPECT_CODE(answer, kNotFound);
    }
  }
  EXPECT_EQ(deleted, 1);
}

TEST_P(Order, CallersThatGoAwayLeaveNothing) {
  Box& box = Running();
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(BeginWait(box));
  }
  EXPECT_TRUE(e2e::Eventually([&] {
    const auto status = node().Query();
    return status && status->requests_waiting == 0;
  })) << "the keeper keeps requests that nobody waits for";
}

TEST_P(Order, ManyContainersAtOnceStayApart) {
  // More at once than the engine has workers: no call may wait for another. As machines so many
  // would not boot within any limit without KVM.
  const int count = IsSupported(backend(), "many at once") ? 20 : 3;
  std::vector<Box*> boxes;
  std::vector<Pending<pb::CreateTaskResponse>> creates;
  for (int i = 0; i < count; ++i) {
    Box& box =
        Announced({.args = {"sh", "-c", "exit " + std::to_string(i)}}, "-" + std::to_string(i));
    boxes.push_back(&box);
    auto pending = box.client().Begin<pb::CreateTaskResponse>("Create", box.CreateRequest());
    ASSERT_OK(pending);
    creates.push_back(std::move(*pending));
  }
  for (auto& create : creates) {
    EXPECT_OK(create.Get());
  }
  for (Box* box : boxes) {
    EXPECT_OK(box->Start());
  }
  for (int i = 0; i < count; ++i) {
    const auto ended = boxes[static_cast<size_t>(i)]->Wait();
    ASSERT_OK(ended);
    EXPECT_EQ(ended->exit_status(), static_cast<uint32_t>(i));
  }
}

INSTANTIATE_CONTRACT(Order);

}  // namespace
}  // namespace gantry::contract
