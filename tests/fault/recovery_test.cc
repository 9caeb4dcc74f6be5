// SPDX-License-Identifier: Apache-2.0
//
// The engine is killed, and what goes wrong next is at a step of the recovery of the one
// that follows: with containers in every state, execs, terminals and a pod, and one that
// ends while there is no engine.
#include <signal.h>

#include <memory>

#include <gmock/gmock.h>

#include "tests/fault/churn/image_mount.h"
#include "tests/fault/churn/task.h"
#include "tests/fault/harness/disturbance.h"
#include "tests/fault/harness/fault_test.h"
#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

using e2e::Program;

constexpr int kCreated = 1;
constexpr const char* kAnswers = "while read -r line; do eval \"$line\"; done; exit 6";
constexpr const char* kUntilAsked = "trap 'exit 7' TERM; echo ready; while :; do usleep 5000; done";

class FaultRecovery : public FaultTest {
 protected:
  std::string handler() const override {
    return settings().sandbox_api() ? "gantry-shim" : "gantry";
  }

  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    image_ = std::make_unique<ImageMount>(node());
    MakeThem();
  }

  void TearDown() override {
    exec_.reset();
    terminal_.reset();
    created_.reset();
    image_.reset();
    FaultTest::TearDown();
  }

  void MakeThem() {
    StartDetached(Id("-running"), {"sh", "-c", kUntilAsked});
    exec_ = Open({"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id", "x",
                  Id("-running"), "sh", "-c", kAnswers},
                 false);
    StartDetached(Id("-paused"), {"sh", "-c", kUntilAsked});
    EXPECT_EQ(Ctr({"tasks", "pause", Id("-paused")}).status, 0);
    StartDetached(Id("-stopped"), {"sh", "-c", "exit 4"});
    EXPECT_TRUE(WaitForState(Id("-stopped"), "STOPPED"));
    terminal_ = Open(RunWords({"-t"}, Id("-terminal"), {"sh", "-c", kAnswers}), true);
    created_ = std::make_unique<ChurnTask>(node(), Id("-created"), image_->path(),
                                           e2e::Words{"sh", "-c", "exit 8"}, TaskStreams());
    for (const Status& done : {created_->Announce(), created_->Create()}) {
      EXPECT_TRUE(done) << done.error().message;
    }
    const auto config = Pod();
    pod_ = RunPod(config);
    in_pod_ = RunContainerIn(pod_, config, "one", {"sh", "-c", kUntilAsked});
    ExpectAllAreThere();
  }

  std::unique_ptr<Program> Open(const e2e::Words& words, bool terminal) {
    Program::Options options;
    options.terminal = terminal;
    options.input = true;
    return std::make_unique<Program>(node().CtrWords(words), options);
  }

  void ExpectAnswers(Program& program) {
    const std::string number = std::to_string(++asked_);
    program.Write("echo is-$((" + number + "+0))-\n");
    EXPECT_TRUE(program.ReadUntil("is-" + number + "-")) << program.out() << program.err();
  }

  void ExpectAllAreThere() {
    EXPECT_EQ(FindTask(Id("-running")).state, "RUNNING");
    EXPECT_EQ(FindTask(Id("-paused")).state, "PAUSED");
    EXPECT_EQ(FindTask(Id("-stopped")).state, "STOPPED");
    EXPECT_EQ(FindTask(Id("-terminal")).state, "RUNNING");
    ExpectAnswers(*exec_);
    ExpectAnswers(*terminal_);
    const auto created = created_->State();
    EXPECT_TRUE(created) << created.error().message;
    EXPECT_EQ(created.value_or(0), kCreated);
    const auto pod = cri().PodStatus(pod_);
    EXPECT_TRUE(pod && pod->status().state() == e2e::cri::SANDBOX_READY);
    EXPECT_EQ(StatusOf(in_pod_).state(), e2e::cri::CONTAINER_RUNNING);
  }

  /// One that ends while there is no engine.
  struct Ending {
    std::string id;
    pid_t pid = 0;
  };

  Ending StartEnding() {
    Ending ending{Id("-ending" + std::to_string(++endings_))};
    const std::string log = settings().root + "/" + ending.id + ".log";
    StartDetached(ending.id, {"sh", "-c", kUntilAsked}, {"--log-uri", "file://" + log});
    // Before that it ends otherwise.
    EXPECT_TRUE(e2e::Eventually([&] { return e2e::ReadText(log) == "ready\n"; }));
    ending.pid = FindTask(ending.id).pid;
    EXPECT_GT(ending.pid, 0);
    return ending;
  }

  void ExpectEndOf(const Ending& ending) {
    EXPECT_TRUE(WaitForState(ending.id, "STOPPED")) << FindTask(ending.id).state;
    const e2e::Output removed = Ctr({"tasks", "rm", ending.id});
    EXPECT_NE(removed.err.find("non-zero exit code 7"), std::string::npos) << removed.Text();
    EXPECT_EQ(Ctr({"containers", "rm", ending.id}).status, 0);
    EXPECT_THAT(e2e::Events::TopicsOnce(events().Until("/tasks/delete", ending.id)),
                testing::ElementsAre("create", "start", "exit", "delete"));
  }

  /// One recovery, with what goes wrong in it.
  void RecoverWith(const Fault* fault) {
    const Ending ending = StartEnding();
    std::unique_ptr<Disturbance> disturbance;
    KillEngine([&] {
      if (fault != nullptr) {
        disturbance = std::make_unique<Disturbance>(node(), *fault);
      } else {
        Faults::Get().Record();
      }
      kill(ending.pid, SIGTERM);
    });
    if (fault != nullptr && MayFail(fault->trouble)) {
      // What could not be taken up is not lost: the next engine can.
      WaitForEngine();
      const bool happened = disturbance->End();
      KillEngine();
      Note("recovery", *fault, happened);
    } else if (fault != nullptr) {
      WaitForEngine();
      const bool happened = disturbance->End();
      Note("recovery", *fault, happened);
    } else {
      WaitForEngine();
    }
    passed_ = fault == nullptr ? Faults::Get().Recorded() : passed_;
    ExpectEndOf(ending);
    ExpectAllAreThere();
  }

  void EndThem() {
    exec_->CloseInput();
    EXPECT_EQ(exec_->Wait(), 6) << exec_->err();
    terminal_->Write("exit 3\n");
    EXPECT_EQ(terminal_->Wait(), 3) << terminal_->out();
    EXPECT_EQ(Ctr({"containers", "rm", Id("-terminal")}).status, 0);
    const e2e::Output stopped = Ctr({"tasks", "rm", Id("-stopped")});
    EXPECT_NE(stopped.err.find("non-zero exit code 4"), std::string::npos) << stopped.Text();
    EXPECT_EQ(Ctr({"containers", "rm", Id("-stopped")}).status, 0);
    EXPECT_EQ(Ctr({"tasks", "resume", Id("-paused")}).status, 0);
    for (const char* name : {"-running", "-paused"}) {
      EXPECT_EQ(Ctr({"tasks", "kill", "-s", "TERM", Id(name)}).status, 0);
      EXPECT_TRUE(WaitForState(Id(name), "STOPPED"));
      const e2e::Output removed = Ctr({"tasks", "rm", Id(name)});
      EXPECT_NE(removed.err.find("non-zero exit code 7"), std::string::npos) << removed.Text();
      EXPECT_EQ(Ctr({"containers", "rm", Id(name)}).status, 0);
    }
    EndCreated();
    EXPECT_TRUE(cri().Stop(in_pod_, std::chrono::seconds(30)));
    EXPECT_EQ(StatusOf(in_pod_).exit_code(), 7);
  }

  void EndCreated() {
    for (const Status& done : {created_->BeginWait(), created_->Start()}) {
      EXPECT_TRUE(done) << done.error().message;
    }
    const auto ended = created_->Wait();
    EXPECT_TRUE(ended && ended->status == 8);
    const auto deleted = created_->Delete();
    EXPECT_TRUE(deleted && deleted->status == 8);
    EXPECT_TRUE(created_->ShimDelete());
  }

  std::vector<PassedPoint> passed_;

 private:
  std::unique_ptr<ImageMount> image_;
  std::unique_ptr<Program> exec_;
  std::unique_ptr<Program> terminal_;
  std::unique_ptr<ChurnTask> created_;
  std::string pod_;
  std::string in_pod_;
  int asked_ = 0;
  int endings_ = 0;
};

TEST_F(FaultRecovery, InEachStep) {
  RecoverWith(nullptr);
  std::vector<FaultList> runs(1);
  for (const PassedPoint& point : passed_) {
    AddFailures(point, runs.front());
  }
  Choose(runs);
  for (FaultList& list = runs.front(); !list.empty() && !HasFailure(); list.pop_back()) {
    SCOPED_TRACE(Describe(list.back()));
    RecoverWith(&list.back());
  }
  EndThem();
}

}  // namespace
}  // namespace gantry::fault
