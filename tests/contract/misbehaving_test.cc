// SPDX-License-Identifier: Apache-2.0
//
// Backends that break the rules: the core says whose fault it was, and the
// containers of other backends in the same engine do not notice.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <optional>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/interrupt.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

/// A handler "block-Start" misbehaves so in that call.
const std::vector<std::string> kHandlers = {"block-CreateSandbox",
                                            "block-SandboxStart",
                                            "block-CreateContainer",
                                            "block-Start",
                                            "block-Kill",
                                            "block-KillAll",
                                            "block-Pause",
                                            "block-Stats",
                                            "block-Processes",
                                            "block-Exec",
                                            "block-ExecStart",
                                            "block-Delete",
                                            "block-Shutdown",
                                            "block-Stop",
                                            "block-RecoverSandbox",
                                            "throw-CreateSandbox",
                                            "throw-SandboxStart",
                                            "throw-CreateContainer",
                                            "throw-Start",
                                            "throw-Kill",
                                            "throw-Pause",
                                            "throw-Stats",
                                            "throw-Exec",
                                            "throw-ExecStart",
                                            "throw-Stop",
                                            "throw-Info",
                                            "throw-Platform",
                                            "throw-RecoverSandbox",
                                            "garbage-CreateSandbox",
                                            "garbage-SandboxStart",
                                            "garbage-CreateContainer",
                                            "garbage-Unimplemented",
                                            "garbage-Start",
                                            "garbage-Stats",
                                            "garbage-Processes",
                                            "garbage-Exec",
                                            "garbage-SetPid",
                                            "garbage-Info",
                                            "garbage-Platform",
                                            "garbage-RecoverSandbox",
                                            "crash-Stats",
                                            "crash-RecoverSandbox",
                                            "late-End",
                                            "forget-Start"};

/// The backend's name as it stands in what it did wrong.
constexpr const char* kBlamed = "backend 'misbehave'";

class Misbehaving : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(mkfifo(gate().c_str(), 0600), 0);
    ASSERT_EQ(node_.Start(Additions()), "");
    neighbour_ = &NewBox("neighbour", "runc");
    ASSERT_OK(neighbour_->Create());
    ASSERT_OK(neighbour_->Start());
    engine_ = node_.Engine();
  }

  void TearDown() override {
    if (IsSkipped()) {
      return;
    }
    EXPECT_EQ(node_.Engine(), engine_) << "the engine has not lived through it";
    if (neighbour_ != nullptr) {
      ExpectOthersWork("at the end");
    }
    OpenGate();
    for (PodBox& pod : pods_) {
      IgnoreError(node_.ShimDelete(pod.id(), pod.bundle()), "a test that cares has done it");
    }
    for (Box& box : boxes_) {
      IgnoreError(node_.ShimDelete(box.id(), box.bundle()), "a test that cares has done it");
    }
    if (HasFailure()) {
      std::fprintf(stderr, "--- the keeper's and the engine's log:\n%s---\n", node_.Log().c_str());
    }
  }

  NodeAdditions Additions() const {
    NodeAdditions more;
    for (const std::string& handler : kHandlers) {
      const size_t dash = handler.find('-');
      more.handlers += "  " + handler + ": {backend: misbehave, options: " +
                       Options(handler.substr(0, dash), handler.substr(dash + 1)) + "}\n";
    }
    more.handlers += "  stuck: {backend: stuck}\n";
    more.backends = "  misbehave: {path: '" + Plugin("misbehave") + "'}\n  stuck: {path: '" +
                    Plugin("stuck") + "', options: " + Options("block", "Factory") + "}\n";
    more.timeouts = ", create: 3s, start: 3s, exec_start: 3s, kill: 3s, delete: 3s, pause: 3s";
    return more;
  }

  std::string Options(const std::string& mode, const std::string& in) const {
    return Json{{"Mode", mode}, {"In", in}, {"Gate", gate()}, {"Done", done()}}.dump();
  }

  static std::string Plugin(const std::string& name) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() /
           ("libgantry_" + name + ".so");
  }

  std::string gate() const { return node_.root() + "/gate"; }

  std::string done() const { return node_.root() + "/done"; }

  /// What waits goes on, now and from now on.
  void OpenGate() { gate_.reset(open(gate().c_str(), O_RDWR | O_CLOEXEC)); }

  Box& NewBox(const std::string& id, const std::string& handler) {
    Box& box = boxes_.emplace_back(node_, id, handler);
    EXPECT_TRUE(box.Announce()) << node_.Log();
    return box;
  }

  /// Of that handler; its id is the handler's name.
  Box& Announced(const std::string& handler) { return NewBox(handler, handler); }

  Box& Created(const std::string& handler) {
    Box& box = Announced(handler);
    EXPECT_OK(box.Create()) << handler;
    return box;
  }

  Box& Running(const std::string& handler) {
    Box& box = Created(handler);
    EXPECT_OK(box.Start()) << handler;
    return box;
  }

  PodBox& AnnouncedPod(const std::string& handler) {
    PodBox& pod = pods_.emplace_back(node_, handler + "-pod", handler);
    EXPECT_TRUE(pod.Announce());
    return pod;
  }

  PodBox& RunningPod(const std::string& handler) {
    PodBox& pod = AnnouncedPod(handler);
    EXPECT_OK(pod.Create());
    EXPECT_OK(pod.Start());
    return pod;
  }

  template <class T>
  static void ExpectBlamed(const Result<T>& answer, Code code, const std::string& what) {
    EXPECT_TRUE(HasCode(answer, code)) << what;
    EXPECT_THAT(MessageOf(answer), HasSubstr(kBlamed)) << what;
  }

  void ExpectLogged(const std::string& text) const {
    EXPECT_TRUE(e2e::WaitForText(node_.log_path(), text)) << text;
  }

  /// What was there goes on, and a new one lives and ends.
  void ExpectOthersWork(const std::string& when) {
    SCOPED_TRACE(when);
    EXPECT_OK(neighbour_->Exec("x" + std::to_string(++others_), {"true"}));
    EXPECT_OK(neighbour_->Start("x" + std::to_string(others_)));
    EXPECT_OK(neighbour_->Wait("x" + std::to_string(others_)));
    for (const char* backend : {"runc", "remote"}) {
      Box box(node_, std::string("other-") + backend + std::to_string(others_), backend,
              {.args = {"sh", "-c", "exit 5"}});
      ASSERT_TRUE(box.Announce());
      ASSERT_OK(box.Create());
      ASSERT_OK(box.Start());
      EXPECT_EQ(Got(box.Wait()).exit_status(), 5U);
      EXPECT_OK(box.Delete());
      EXPECT_OK(box.Finish());
    }
  }

  Node node_;
  pid_t engine_ = 0;

 private:
  std::list<Box> boxes_;
  std::list<PodBox> pods_;
  Box* neighbour_ = nullptr;
  UniqueFd gate_;
  int others_ = 0;
};

/// A call that is under way, and what it is.
template <class T>
struct Sent {
  std::string what;
  Result<Pending<T>> pending;
};

template <class Response, class Request>
Sent<Response> Send(const Box& box, const char* method, Request request) {
  request.set_id(box.id());
  return {box.id() + " " + method, box.client().Begin<Response>(method, request)};
}

class Blocking : public Misbehaving {
 protected:
  template <class T>
  void ExpectGivenUp(std::list<Sent<T>>& calls) {
    for (Sent<T>& call : calls) {
      ASSERT_OK(call.pending) << call.what;
      ExpectBlamed(call.pending->Get(), Code::kDeadlineExceeded, call.what);
    }
  }
};

TEST_F(Blocking, InCreateHoldsNobodyElseUp) {
  std::list<Sent<pb::CreateTaskResponse>> calls;
  // More than there are workers for a backend.
  for (int i = 0; i < 4; ++i) {
    for (const char* handler :
         {"block-CreateSandbox", "block-SandboxStart", "block-CreateContainer"}) {
      Box& box = NewBox(handler + std::to_string(i), handler);
      calls.push_back(Send<pb::CreateTaskResponse>(box, "Create", box.CreateRequest()));
    }
  }
  ExpectOthersWork("while it blocks");
  ExpectGivenUp(calls);
  ExpectLogged("has not returned from create 'block-CreateContainer");
}

TEST_F(Blocking, InItsCallsHoldsNobodyElseUp) {
  // All are made before the first one blocks: its workers are not for new ones.
  const Box& killed = Running("block-Kill");
  const Box& all = Running("block-KillAll");
  const Box& paused = Running("block-Pause");
  const Box& started = Created("block-Start");
  const Box& measured = Running("block-Stats");
  const Box& listed = Running("block-Processes");
  const Box& deleted = Created("block-Delete");
  const Box& exec = Running("block-Exec");
  const Box& exec_start = Running("block-ExecStart");
  pb::StartRequest start_exec;
  start_exec.set_exec_id("x");
  pb::KillRequest kill_one;
  kill_one.set_signal(SIGTERM);
  pb::KillRequest kill_all = kill_one;
  kill_all.set_all(true);
  EXPECT_OK(exec.Exec("x", {"true"}));
  EXPECT_OK(exec_start.Exec("x", {"true"}));
  // Some give other answers, but an error has none.
  std::list<Sent<wire::Empty>> calls;
  calls.push_back(Send<wire::Empty>(killed, "Kill", kill_one));
  calls.push_back(Send<wire::Empty>(all, "Kill", kill_all));
  calls.push_back(Send<wire::Empty>(paused, "Pause", pb::PauseRequest()));
  calls.push_back(Send<wire::Empty>(started, "Start", pb::StartRequest()));
  calls.push_back(Send<wire::Empty>(measured, "Stats", pb::StatsRequest()));
  calls.push_back(Send<wire::Empty>(listed, "Pids", pb::PidsRequest()));
  calls.push_back(Send<wire::Empty>(deleted, "Delete", pb::DeleteRequest()));
  calls.push_back(Send<wire::Empty>(exec, "Start", start_exec));
  calls.push_back(Send<wire::Empty>(exec_start, "Start", start_exec));
  ExpectOthersWork("while it blocks");
  ExpectGivenUp(calls);
}

TEST_F(Blocking, GoesOnWhereItWasWhenItReturns) {
  Box& box = Created("block-Start");
  ExpectBlamed(box.Start(), Code::kDeadlineExceeded, "Start");
  // Delete waits for the start, and says why it does not come.
  ExpectBlamed(box.Delete(), Code::kDeadlineExceeded, "Delete");
  EXPECT_OK(box.State());
  OpenGate();
  ASSERT_TRUE(e2e::Eventually([&] { return Got(box.State()).status() != pb::CREATED; }));
  // The Delete that waited may come to its turn when the process has ended.
  IgnoreError(box.Finish(), "the other Delete was first");
  EXPECT_CODE(box.State(), kNotFound);
}

TEST_F(Blocking, InAPodIsSaidAndThePodCanBeLost) {
  PodBox& starting = AnnouncedPod("block-SandboxStart");
  EXPECT_OK(starting.Create());
  ExpectBlamed(starting.Start(), Code::kDeadlineExceeded, "StartSandbox");
  PodBox& stopping = RunningPod("block-Stop");
  ExpectBlamed(stopping.Stop(), Code::kDeadlineExceeded, "StopSandbox");
  EXPECT_OK(stopping.Ping());
  EXPECT_OK(stopping.GetStatus());
  PodBox& ending = RunningPod("block-Shutdown");
  ExpectBlamed(ending.Shutdown(), Code::kDeadlineExceeded, "ShutdownSandbox");
  ExpectOthersWork("while it blocks");
  for (PodBox* pod : {&starting, &stopping, &ending}) {
    const auto deleted = node_.ShimDelete(pod->id(), pod->bundle());
    EXPECT_OK(deleted) << pod->id();
  }
}

TEST_F(Blocking, AtTheRecoveryHoldsNobodyElseUp) {
  Box& box = Running("block-RecoverSandbox");
  node_.KillEngine();
  ExpectOthersWork("while it blocks");
  engine_ = node_.Engine();
  ExpectBlamed(box.State(), Code::kDeadlineExceeded, "State");
  OpenGate();
  EXPECT_TRUE(e2e::Eventually([&] { return box.State().has_value(); }));
}

TEST_F(Blocking, InItsFactoryHoldsNobodyElseUp) {
  Box& box = Announced("stuck");
  auto pending = box.client().Begin<pb::CreateTaskResponse>("Create", box.CreateRequest());
  ASSERT_OK(pending);
  // Another plugin is loaded meanwhile.
  EXPECT_OK(Running("throw-Stats").State());
  ExpectOthersWork("while it blocks");
  const auto created = pending->Get();
  EXPECT_CODE(created, kDeadlineExceeded);
  EXPECT_THAT(MessageOf(created), HasSubstr("backend 'stuck'"));
}

class Throwing : public Misbehaving {};

TEST_F(Throwing, InAnyCallIsAnErrorWithItsName) {
  for (const char* handler :
       {"throw-CreateSandbox", "throw-SandboxStart", "throw-CreateContainer"}) {
    Box& box = Announced(handler);
    ExpectBlamed(box.Create(), Code::kInternal, handler);
    EXPECT_CODE(box.State(), kNotFound);
    EXPECT_TRUE(e2e::MountsBelow(box.bundle()).empty());
  }
  Box& start = Created("throw-Start");
  ExpectBlamed(start.Start(), Code::kInternal, "Start");
  EXPECT_OK(start.Finish());
  Box& kill_box = Running("throw-Kill");
  ExpectBlamed(kill_box.Kill(SIGTERM), Code::kInternal, "Kill");
  Box& pause = Running("throw-Pause");
  ExpectBlamed(pause.Pause(), Code::kInternal, "Pause");
  EXPECT_OK(pause.Finish());
  Box& stats = Running("throw-Stats");
  ExpectBlamed(stats.Stats(), Code::kInternal, "Stats");
  EXPECT_OK(stats.Finish());
  for (const char* handler : {"throw-Exec", "throw-ExecStart"}) {
    Box& box = Running(handler);
    EXPECT_OK(box.Exec("x", {"true"}));
    ExpectBlamed(box.Start("x"), Code::kInternal, handler);
    EXPECT_OK(box.Wait("x"));
    EXPECT_OK(box.Delete("x"));
    EXPECT_OK(box.Finish());
  }
}

TEST_F(Throwing, InAPodIsAnErrorWithItsName) {
  PodBox& create = AnnouncedPod("throw-CreateSandbox");
  ExpectBlamed(create.Create(), Code::kInternal, "CreateSandbox");
  PodBox& start = AnnouncedPod("throw-SandboxStart");
  EXPECT_OK(start.Create());
  ExpectBlamed(start.Start(), Code::kInternal, "StartSandbox");
  EXPECT_OK(start.Shutdown());
  PodBox& platform = RunningPod("throw-Platform");
  ExpectBlamed(platform.Platform(), Code::kInternal, "Platform");
  EXPECT_OK(platform.Finish());
  PodBox& stop = RunningPod("throw-Stop");
  ExpectBlamed(stop.Stop(), Code::kInternal, "StopSandbox");
  EXPECT_OK(stop.Shutdown());
  EXPECT_OK(stop.Finish());
}

TEST_F(Throwing, AtTheRecoveryIsLogged) {
  Box& box = Running("throw-RecoverSandbox");
  node_.KillEngine();
  engine_ = node_.Engine();
  // Its process is known by the record.
  EXPECT_OK(box.State());
  ExpectLogged("backend 'misbehave' threw: out of luck in RecoverSandbox");
}

class Garbage : public Misbehaving {};

TEST_F(Garbage, InPlaceOfObjectsIsRefused) {
  for (const char* handler : {"garbage-CreateSandbox", "garbage-CreateContainer"}) {
    Box& box = Announced(handler);
    ExpectBlamed(box.Create(), Code::kInternal, handler);
    EXPECT_CODE(box.State(), kNotFound);
    EXPECT_TRUE(e2e::MountsBelow(box.bundle()).empty());
  }
  ExpectBlamed(AnnouncedPod("garbage-CreateSandbox").Create(), Code::kInternal, "CreateSandbox");
  Box& exec = Running("garbage-Exec");
  EXPECT_OK(exec.Exec("x", {"true"}));
  ExpectBlamed(exec.Start("x"), Code::kInternal, "Exec");
  EXPECT_OK(exec.Finish());
  Box& recovered = Running("garbage-RecoverSandbox");
  node_.KillEngine();
  engine_ = node_.Engine();
  EXPECT_OK(recovered.State());
  ExpectLogged("reported success and gave nothing");
}

TEST_F(Garbage, AsErrorsStaysReadable) {
  Box& box = Created("garbage-Start");
  const auto started = box.Start();
  ExpectBlamed(started, Code::kInternal, "Start");
  EXPECT_THAT(MessageOf(started), HasSubstr("4711"));
  EXPECT_LT(MessageOf(started).size(), 20'000U);
  EXPECT_OK(box.Finish());
  // containerd would take the whole service for an old one.
  EXPECT_CODE(Announced("garbage-Unimplemented").Create(), kFailedPrecondition);
}

TEST_F(Garbage, InAnswersHarmsNobody) {
  Box& stats = Running("garbage-Stats");
  EXPECT_CODE(stats.Stats(), kResourceExhausted);
  EXPECT_OK(stats.Finish());
  Box& list = Running("garbage-Processes");
  EXPECT_CODE(list.Pids(), kResourceExhausted);
  EXPECT_OK(list.Finish());
  PodBox& pod = RunningPod("garbage-Platform");
  const auto platform = pod.Platform();
  ASSERT_OK(platform);
  EXPECT_EQ(platform->platform().os(), "??? no text ?");
  EXPECT_OK(pod.Finish());
  PodBox& info = RunningPod("garbage-Info");
  sandbox_pb::SandboxStatusRequest request;
  request.set_sandbox_id(info.id());
  request.set_verbose(true);
  const auto status =
      info.client().Call<sandbox_pb::SandboxStatusResponse>("SandboxStatus", request);
  ASSERT_OK(status);
  EXPECT_EQ(status->state(), "SANDBOX_READY");
  EXPECT_EQ(status->info().at("??? no text ?"), "??? no text ?");
  EXPECT_OK(info.Finish());
}

TEST_F(Garbage, AsPidsAndExitCodesIsNotPassedOn) {
  Box& box = Announced("garbage-SetPid");
  const auto created = box.Create();
  ASSERT_OK(created);
  EXPECT_EQ(created->pid(), 0U);
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 255U);
  EXPECT_GT(ended->exited_at().seconds(), 0);
  ExpectLogged("'/etc' holds its state by its backend's word");
  EXPECT_OK(box.Finish());
  PodBox& pod = AnnouncedPod("garbage-SandboxStart");
  EXPECT_OK(pod.Create());
  ExpectBlamed(pod.Start(), Code::kInternal, "StartSandbox");
  EXPECT_OK(pod.Shutdown());
}

class Crashing : public Misbehaving {
 protected:
  void TearDown() override {
    engine_ = IsSkipped() ? 0 : node_.Engine();
    Misbehaving::TearDown();
  }

  bool IsLeftOut(const std::string& id) const {
    const auto status = node_.Query();
    return status && std::ranges::any_of(status->instances, [&](const auto& instance) {
             return instance.announce.id == id && instance.left_out;
           });
  }
};

TEST_F(Crashing, ACallIsAnsweredAfterSomeEnginesAndTheOthersWork) {
  Box& box = Running("crash-Stats");
  const auto stats = box.Stats();
  EXPECT_TRUE(HasCode(stats, Code::kInternal));
  EXPECT_THAT(MessageOf(stats), HasSubstr("answer 'Stats': the engine died"));
  ExpectOthersWork("afterwards");
  EXPECT_OK(box.State());
  const auto status = node_.Query();
  ASSERT_OK(status);
  EXPECT_EQ(status->requests_dropped, 1U);
  EXPECT_LE(status->engine_starts, 4U);
  EXPECT_OK(box.Finish());
}

TEST_F(Crashing, AtTheRecoveryLeavesOutThatOneOnly) {
  Box& box = Running("crash-RecoverSandbox");
  node_.KillEngine();
  ExpectOthersWork("while engines crash");
  ASSERT_TRUE(e2e::Eventually([&] { return IsLeftOut(box.id()); }));
  const auto state = box.State();
  EXPECT_TRUE(HasCode(state, Code::kInternal));
  EXPECT_THAT(MessageOf(state), HasSubstr("gantryctl delete"));
  EXPECT_FALSE(IsLeftOut("neighbour"));
  ExpectOthersWork("without it");
  EXPECT_LE(node_.Query()->engine_starts, 6U);
  EXPECT_OK(node_.ShimDelete(box.id(), box.bundle()));
  EXPECT_TRUE(e2e::Eventually([&] { return box.State().error().code == Code::kNotFound; }));
}

class Late : public Misbehaving {};

TEST_F(Late, CallsFindNothing) {
  Box& box = Running("late-End");
  const std::string bundle = box.bundle();
  EXPECT_OK(box.Finish());
  OpenGate();
  ASSERT_TRUE(e2e::Eventually([&] { return std::filesystem::exists(done()); }));
  ExpectLogged("backend 'misbehave' calls 'Exited' of a process that is not there any more");
  ExpectLogged("backend 'misbehave' calls 'Spawn' of a sandbox that it has shut down");
  // One spawned while the sandbox ended is killed, and may take a moment to go.
  EXPECT_TRUE(e2e::Eventually([] {
    return e2e::Processes(
               [](const e2e::HostProcess& process) { return process.command.contains("31536777"); })
        .empty();
  }));
  EXPECT_FALSE(std::filesystem::exists(bundle)) << "a late Save made a record";
}

class Forgetting : public Misbehaving {
 protected:
  static std::vector<e2e::HostProcess> Forgotten() {
    return e2e::Processes(
        [](const e2e::HostProcess& process) { return process.command.contains("31536555"); });
  }
};

TEST_F(Forgetting, ProcessesEndWithTheirSandbox) {
  Box& box = Running("forget-Start");
  EXPECT_EQ(Forgotten().size(), 2U);
  EXPECT_OK(box.Finish());
  EXPECT_TRUE(e2e::Eventually([] { return Forgotten().empty(); }));
  ExpectLogged("backend 'misbehave' left process");
}

TEST_F(Forgetting, ChildrenAreReaped) {
  Running("forget-Start");
  ExpectLogged("unreaped in start 'forget-Start'");
  EXPECT_TRUE(e2e::Processes([this](const e2e::HostProcess& process) {
                return process.parent == engine_;
              }).empty());
}

}  // namespace
}  // namespace gantry::contract
