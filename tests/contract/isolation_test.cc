// SPDX-License-Identifier: Apache-2.0
//
// One sandbox takes all it can get: the others do not notice, and what is held for it has
// a bound. What others do is to be complete while its calls are without an answer.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/ctl/client.h"
#include "core/rpc/blocking_client.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

/// As many as there are workers by default.
constexpr int kWorkers = 8;
constexpr size_t kMostExecs = 1024;
constexpr size_t kFifoBytes = size_t{256} << 10;
/// Nobody's patience ends before the test is done with the others.
constexpr std::chrono::minutes kPatient(10);

/// A request on a connection of its own, without an answer so far.
class Outstanding {
 public:
  template <class Request>
  Outstanding(const Box& box, const char* method, const Request& request)
      : client_(rpc::BlockingClient::Connect(box.client().path())) {
    if (client_) {
      stream_ = client_->Send(kService, method, request.SerializeAsString(), kPatient);
    }
  }

  bool sent() const { return client_ && stream_; }

  bool answered() const {
    pollfd fd{client_->fd(), POLLIN, 0};
    return poll(&fd, 1, 0) != 0;
  }

  Status Get() { return Plain(client_->Receive(*stream_, kCallLimit)); }

 private:
  Result<rpc::BlockingClient> client_;
  Result<uint32_t> stream_ = Fail(Code::kUnavailable, "not sent");
};

class Isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(mkfifo(gate().c_str(), 0600), 0);
    NodeAdditions more;
    for (const char* in : {"Stats", "Exec", "CreateContainer", "Nothing"}) {
      more.handlers += std::string("  block-") + in + ": {backend: misbehave, options: " +
                       Json{{"Mode", "block"}, {"In", in}, {"Gate", gate()}}.dump() + "}\n";
    }
    const std::string programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    more.backends = "  misbehave: {path: '" + programs + "/libgantry_misbehave.so'}\n";
    more.timeouts = ", create: 10m, exec_start: 10m, pause: 10m";
    more.stdio_open = "10m";
    ASSERT_EQ(node_.Start(more), "");
    neighbour_ = &Running("neighbour", "runc");
    engine_ = node_.Engine();
  }

  void TearDown() override {
    if (IsSkipped()) {
      return;
    }
    EXPECT_EQ(node_.Engine(), engine_) << "the engine has not lived through it";
    OpenGate();
    for (Box& box : boxes_) {
      IgnoreError(node_.ShimDelete(box.id(), box.bundle()), "a test that cares has done it");
    }
    if (HasFailure()) {
      std::fprintf(stderr, "--- the keeper's and the engine's log:\n%s---\n", node_.Log().c_str());
    }
  }

  std::string gate() const { return node_.root() + "/gate"; }

  /// What blocks goes on, now and from now on.
  void OpenGate() { gate_.reset(open(gate().c_str(), O_RDWR | O_CLOEXEC)); }

  Box& Announced(const std::string& id, const std::string& handler, BoxOptions options = {}) {
    Box& box = boxes_.emplace_back(node_, id, handler, std::move(options));
    EXPECT_TRUE(box.Announce()) << node_.Log();
    return box;
  }

  Box& Running(const std::string& id, const std::string& handler, BoxOptions options = {}) {
    Box& box = Announced(id, handler, std::move(options));
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
    return box;
  }

  std::string NewFifo(const std::string& name) const {
    const std::string path = node_.root() + "/" + name;
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  template <class Request>
  void Begin(const Box& box, const char* method, Request request) {
    request.set_id(box.id());
    outstanding_.emplace_back(box, method, request);
    ASSERT_TRUE(outstanding_.back().sent());
  }

  bool AnyAnswered() const {
    return std::ranges::any_of(outstanding_, [](const Outstanding& one) { return one.answered(); });
  }

  /// As gantryctl shows it.
  v1::Instance Shown(const Box& box) const {
    auto client = ctl::OperatorClient::Connect(node_.run_dir() + "/gantry.sock");
    EXPECT_OK(client);
    const auto answer = client ? client->Inspect(kNamespace, box.id())
                               : Result<v1::InspectResponse>(std::unexpected(client.error()));
    return Got(answer).instance();
  }

  /// One that is there: State, an exec's whole life, a signal. And a new one, from Create to
  /// Delete.
  void ExpectOthersWork(const std::string& handler = "runc") {
    SCOPED_TRACE(handler);
    const std::string name = "other" + std::to_string(++others_);
    EXPECT_OK(neighbour_->State());
    EXPECT_OK(neighbour_->Exec(name, {"sleep", "1000"}));
    EXPECT_OK(neighbour_->Start(name));
    EXPECT_OK(neighbour_->Kill(SIGKILL, name));
    EXPECT_EQ(Got(neighbour_->Wait(name)).exit_status(), 137U);
    EXPECT_OK(neighbour_->Delete(name));
    Box box(node_, name, handler);
    ASSERT_TRUE(box.Announce());
    ASSERT_OK(box.Create());
    ASSERT_OK(box.Start());
    EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
    EXPECT_OK(box.Exec("x", {"sleep", "1000"}));
    EXPECT_OK(box.Start("x"));
    EXPECT_OK(box.Kill(SIGKILL, "x"));
    EXPECT_OK(box.Wait("x"));
    EXPECT_OK(box.Delete("x"));
    EXPECT_OK(box.Kill(SIGKILL));
    EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
    EXPECT_OK(box.Delete());
    EXPECT_OK(box.Finish());
  }

  Node node_;
  std::list<Box> boxes_;
  std::list<Outstanding> outstanding_;
  Box* neighbour_ = nullptr;

 private:
  UniqueFd gate_;
  pid_t engine_ = 0;
  int others_ = 0;
};

/// Its fifo is full and stays so; no more than that is held.
class EndlessOutput : public Isolation {
 protected:
  void Flood(bool terminal, bool dead_reader) {
    BoxOptions options;
    options.args = {"cat", "/dev/zero"};
    options.terminal = terminal;
    options.out = NewFifo("out");
    UniqueFd reader(open(options.out.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(reader);
    const Box& box = Running("flood", "runc", options);
    if (dead_reader) {
      reader.reset();
    }
    // Some bytes before its end a fifo takes no whole piece any more, and what comes from a
    // terminal takes a page for each piece, however small.
    const size_t much = terminal ? 4096 : kFifoBytes / 2;
    const auto full = [&] { return Shown(box).unread_bytes() >= much; };
    ASSERT_TRUE(e2e::Eventually(full, e2e::kLong)) << Shown(box).unread_bytes();
    ExpectOthersWork();
    const v1::Instance shown = Shown(box);
    EXPECT_GE(shown.unread_bytes(), much) << "somebody reads";
    // One more stands for a copy under way.
    EXPECT_LE(shown.unread_bytes(), kFifoBytes + 1);
    EXPECT_LT(shown.buffered_bytes(), size_t{64} << 10);
    EXPECT_EQ(shown.calls(), 0U);
    EXPECT_OK(box.State());
    EXPECT_OK(box.Kill(SIGKILL));
    EXPECT_OK(box.Wait());
  }
};

TEST_F(EndlessOutput, IsNotRead) { Flood(false, false); }

TEST_F(EndlessOutput, IsNotReadEverAgain) { Flood(false, true); }

TEST_F(EndlessOutput, OfATerminalIsNotRead) { Flood(true, false); }

TEST_F(EndlessOutput, OfATerminalIsNotReadEverAgain) { Flood(true, true); }

class ManyExecs : public Isolation {
 protected:
  /// Adds so many, some of them at a time; how many were taken.
  static size_t Add(const Box& box, size_t count) {
    constexpr size_t kAtATime = 200;
    Result<rpc::BlockingClient> client = rpc::BlockingClient::Connect(box.client().path());
    EXPECT_OK(client);
    size_t taken = 0;
    for (size_t begun = 0; client && begun < count;) {
      std::vector<uint32_t> streams;
      for (size_t i = 0; i < kAtATime && begun < count; ++i, ++begun) {
        streams.push_back(Got(client->Send(kService, "Exec", Request(box, begun), kPatient)));
      }
      for (const uint32_t stream : streams) {
        const auto answer = client->Receive(stream, kCallLimit);
        taken += answer ? 1 : 0;
        if (!answer) {
          EXPECT_CODE(answer, kResourceExhausted);
          EXPECT_THAT(MessageOf(answer), HasSubstr("limits.max_execs_per_container"));
        }
      }
    }
    return taken;
  }

  /// Starts them, without waiting for it, on a few connections.
  static std::list<rpc::BlockingClient> StartAll(const Box& box) {
    constexpr size_t kOnOne = 128;
    std::list<rpc::BlockingClient> clients;
    pb::StartRequest request;
    request.set_id(box.id());
    for (size_t i = 0; i < kMostExecs; ++i) {
      if (i % kOnOne == 0) {
        auto client = rpc::BlockingClient::Connect(box.client().path());
        EXPECT_OK(client);
        if (!client) {
          break;
        }
        clients.push_back(std::move(*client));
      }
      request.set_exec_id(Name(i));
      EXPECT_OK(clients.back().Send(kService, "Start", request.SerializeAsString(), kPatient));
    }
    return clients;
  }

  static std::string Name(size_t number) { return "x" + std::to_string(number); }

 private:
  static std::string Request(const Box& box, size_t number) {
    pb::ExecProcessRequest request;
    request.set_id(box.id());
    request.set_exec_id(Name(number));
    request.mutable_spec()->set_type_url(
        "types.containerd.io/opencontainers/runtime-spec/1/Process");
    request.mutable_spec()->set_value(MakeProcess({"true"}).dump());
    return request.SerializeAsString();
  }
};

TEST_F(ManyExecs, AreRefusedAboveTheLimitAndHoldNobodyElseUp) {
  const Box& box = Running("many", "block-Exec");
  const uint64_t before = Shown(box).buffered_bytes();
  EXPECT_EQ(Add(box, 10'000), kMostExecs);
  const v1::Instance shown = Shown(box);
  EXPECT_EQ(shown.execs(), kMostExecs);
  EXPECT_GT(shown.buffered_bytes(), before + kMostExecs * 100);
  EXPECT_LT(shown.buffered_bytes(), size_t{64} << 20);
  // All of them at once, and none comes to its end.
  std::list<rpc::BlockingClient> clients = StartAll(box);
  ASSERT_TRUE(e2e::Eventually([&] { return Shown(box).calls() == kMostExecs; }));
  ExpectOthersWork();
  // Of the same backend.
  ExpectOthersWork("block-Nothing");
  EXPECT_EQ(Shown(box).calls(), kMostExecs);
  OpenGate();
  ASSERT_TRUE(e2e::Eventually([&] { return Shown(box).calls() == 0; }, e2e::kLong));
  EXPECT_EQ(Got(box.State(Name(0))).status(), pb::RUNNING);
  EXPECT_EQ(Got(box.State(Name(kMostExecs - 1))).status(), pb::RUNNING);
}

class BlockedCalls : public Isolation {};

TEST_F(BlockedCalls, OfOneSandboxLeaveItsBackendToTheOthers) {
  const Box& box = Running("stuck", "block-Stats");
  for (int i = 0; i < 3 * kWorkers; ++i) {
    Begin(box, "Stats", pb::StatsRequest());
  }
  ASSERT_TRUE(e2e::Eventually([&] { return Shown(box).calls() == 3 * kWorkers; }));
  ExpectOthersWork();
  ExpectOthersWork("block-Nothing");
  EXPECT_OK(box.State());
  EXPECT_EQ(Shown(box).calls(), 3U * kWorkers);
  EXPECT_FALSE(AnyAnswered());
  OpenGate();
  for (Outstanding& one : outstanding_) {
    IgnoreError(one.Get(), "the backend has no figures; it must only answer");
  }
  ASSERT_TRUE(e2e::Eventually([&] { return Shown(box).calls() == 0; }));
}

TEST_F(BlockedCalls, OfAllSandboxesLeaveOtherBackendsAlone) {
  // All are made before the first one blocks: then no worker is left.
  for (int i = 0; i < kWorkers; ++i) {
    Running("stuck" + std::to_string(i), "block-Stats");
  }
  for (const Box& box : boxes_) {
    for (int call = 0; &box != neighbour_ && call < 3; ++call) {
      Begin(box, "Stats", pb::StatsRequest());
    }
  }
  ASSERT_TRUE(e2e::Eventually([&] { return Shown(boxes_.back()).calls() == 3; }));
  ExpectOthersWork();
  for (const Box& box : boxes_) {
    EXPECT_OK(box.State());
  }
  EXPECT_FALSE(AnyAnswered());
}

TEST_F(BlockedCalls, OfClientsThatOpenNoFifoHoldNobodyElseUp) {
  std::vector<std::string> fifos;
  for (int i = 0; i < 2 * kWorkers; ++i) {
    BoxOptions options;
    options.out = fifos.emplace_back(NewFifo("out" + std::to_string(i)));
    const Box& box = Announced("silent" + std::to_string(i), "runc", options);
    Begin(box, "Create", box.CreateRequest());
  }
  const auto asked = [&] {
    return std::ranges::all_of(
        boxes_, [&](const Box& box) { return &box == neighbour_ || box.State().has_value(); });
  };
  ASSERT_TRUE(e2e::Eventually(asked));
  ExpectOthersWork();
  EXPECT_FALSE(AnyAnswered());
  std::vector<UniqueFd> readers;
  for (const std::string& fifo : fifos) {
    readers.emplace_back(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  for (Outstanding& one : outstanding_) {
    EXPECT_OK(one.Get());
  }
}

class Accounts : public Isolation {};

TEST_F(Accounts, ShowWhoCostsTheEngineItsTime) {
  const Box& busy = Running("busy", "runc");
  const uint64_t before = Shown(busy).engine_cpu_ns();
  const uint64_t neighbours = Shown(*neighbour_).engine_cpu_ns();
  EXPECT_GT(before, 0U);
  constexpr int kCalls = 500;
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_OK(busy.State());
  }
  const uint64_t spent = Shown(busy).engine_cpu_ns() - before;
  // No clock is that coarse.
  EXPECT_GT(spent, uint64_t{kCalls} * 1'000);
  EXPECT_LT(Shown(*neighbour_).engine_cpu_ns() - neighbours, spent);
}

TEST_F(Accounts, ShowWhatABackendHasCounted) {
  const auto runs = [this] {
    auto client = ctl::OperatorClient::Connect(node_.run_dir() + "/gantry.sock");
    EXPECT_OK(client);
    const v1::StatusResponse status = client ? Got(client->EngineStatus()) : v1::StatusResponse();
    uint64_t sum = 0;
    for (const v1::BackendStatus& backend : status.backends()) {
      for (const v1::BackendCount& count : backend.counts()) {
        sum += backend.name() == "runc" && count.name() == "oci_runs" ? count.value() : 0;
      }
    }
    return sum;
  };
  const uint64_t before = runs();
  EXPECT_GT(before, 0U);
  Running("another", "runc");
  EXPECT_GT(runs(), before);
}

}  // namespace
}  // namespace gantry::contract
