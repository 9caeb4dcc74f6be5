// SPDX-License-Identifier: Apache-2.0
//
// An OCI runtime that hangs in `exec` or in `delete`: it holds up nothing else, of that
// container or of others, and nothing of it is left.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/rpc/blocking_client.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

/// Nobody else sleeps for so long.
constexpr const char* kNap = "31537777";
/// Nobody's patience ends before the test is done with the others.
constexpr std::chrono::minutes kNapPatience(10);

/// A request on a connection of its own, without an answer so far.
class Patient {
 public:
  template <class Request>
  Patient(const Box& box, const char* method, const Request& request)
      : client_(rpc::BlockingClient::Connect(box.client().path())) {
    EXPECT_OK(client_);
    if (client_) {
      stream_ = client_->Send(kService, method, request.SerializeAsString(), kNapPatience);
      EXPECT_OK(stream_);
    }
  }

  Status Get() {
    return client_ && stream_ ? Plain(client_->Receive(*stream_, kNapPatience))
                              : Status(Fail(Code::kUnavailable, "not sent"));
  }

 private:
  Result<rpc::BlockingClient> client_;
  Result<uint32_t> stream_ = Fail(Code::kUnavailable, "not sent");
};

class HangingRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    const std::string wrapper = node_.root() + "/wrapper";
    e2e::WriteText(wrapper, std::string("#!/bin/sh\n"
                                        "for word in \"$@\"; do\n"
                                        "  case $word in exec | delete)\n"
                                        "    [ -e ") +
                                node_.root() + "/hang-$word ] && sleep " + kNap +
                                ";;\n  esac\ndone\nexec crun \"$@\"\n");
    std::filesystem::permissions(wrapper, std::filesystem::perms::owner_all);
    const Json options = {{"BinaryName", wrapper}, {"Root", node_.root() + "/oci"}};
    Json patient = options;
    patient["DeleteTimeoutMs"] = 600'000;
    NodeAdditions more;
    more.handlers = "  wrapped: {backend: runc, options: " + options.dump() +
                    "}\n  patient: {backend: runc, options: " + patient.dump() + "}\n";
    more.timeouts = ", start: 10m, exec_start: 10m, delete: 10m";
    ASSERT_EQ(node_.Start(more), "");
  }

  void TearDown() override {
    if (IsSkipped()) {
      return;
    }
    Hang("exec", false);
    Hang("delete", false);
    EndNaps();
    for (Box& box : boxes_) {
      IgnoreError(node_.ShimDelete(box.id(), box.bundle()), "a test that cares has done it");
    }
    if (HasFailure()) {
      std::fprintf(stderr, "--- the keeper's and the engine's log:\n%s---\n", node_.Log().c_str());
    }
  }

  void Hang(const std::string& verb, bool hangs) const {
    const std::string file = node_.root() + "/hang-" + verb;
    if (hangs) {
      e2e::WriteText(file, "");
    } else {
      std::filesystem::remove(file);
    }
  }

  static std::vector<e2e::HostProcess> Naps() {
    return e2e::Processes(
        [](const e2e::HostProcess& process) { return process.command.contains(kNap); });
  }

  static void EndNaps() {
    for (const e2e::HostProcess& nap : Naps()) {
      kill(nap.pid, SIGKILL);
    }
  }

  Box& Running(const std::string& id, const std::string& handler, BoxOptions options = {}) {
    Box& box = boxes_.emplace_back(node_, id, handler, std::move(options));
    EXPECT_TRUE(box.Announce()) << node_.Log();
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
    return box;
  }

  /// Its `delete` is the runtime's.
  Box& Ended(const std::string& id, const std::string& handler) {
    BoxOptions options;
    options.spec = {{"hooks", {{"poststop", {{{"path", "/bin/true"}}}}}}};
    Box& box = Running(id, handler, options);
    EXPECT_OK(box.Kill(SIGKILL));
    EXPECT_OK(box.Wait());
    return box;
  }

  void BeginDelete(const Box& box) {
    pb::DeleteRequest request;
    request.set_id(box.id());
    calls_.emplace_back(box, "Delete", request);
  }

  void BeginExec(const Box& box, const std::string& exec) {
    pb::StartRequest request;
    request.set_id(box.id());
    request.set_exec_id(exec);
    EXPECT_OK(box.Exec(exec, {"true"}));
    calls_.emplace_back(box, "Start", request);
  }

  static void ExpectWorks(const Box& box, const std::string& exec) {
    EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
    EXPECT_OK(box.Stats());
    EXPECT_OK(box.Pids());
    EXPECT_OK(box.Exec(exec, {"true"}));
    EXPECT_OK(box.Start(exec));
    EXPECT_EQ(Got(box.Wait(exec)).exit_status(), 0U);
    EXPECT_OK(box.Delete(exec));
  }

  Node node_;
  std::list<Box> boxes_;
  /// Without an answer so far.
  std::list<Patient> calls_;
};

TEST_F(HangingRuntime, InExecsKeepsNobodyFromEndingTheContainer) {
  constexpr size_t kExecs = 6;
  const Box& neighbour = Running("neighbour", "wrapped");
  BoxOptions in_its_pod;
  in_its_pod.group = "neighbour";
  Box& box = Running("box", "wrapped", in_its_pod);
  Hang("exec", true);
  for (size_t i = 0; i < kExecs; ++i) {
    BeginExec(box, "x" + std::to_string(i));
  }
  // As many as there are workers for one sandbox.
  ASSERT_TRUE(e2e::Eventually([] { return Naps().size() == 4; }, e2e::kLong));
  EXPECT_OK(box.State());
  EXPECT_OK(box.Stats());
  EXPECT_OK(box.Pids());
  EXPECT_OK(neighbour.Stats());
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  for (Patient& start : calls_) {
    EXPECT_FALSE(start.Get().has_value());
  }
  EXPECT_TRUE(e2e::Eventually([] { return Naps().empty(); })) << e2e::Describe(Naps());
  EXPECT_OK(box.Delete());
  EXPECT_OK(box.Finish());
  Hang("exec", false);
  ExpectWorks(neighbour, "y");
}

TEST_F(HangingRuntime, InExecsIsGoneWhenTheContainerIsLost) {
  Box& box = Running("box", "wrapped");
  Hang("exec", true);
  BeginExec(box, "x");
  ASSERT_TRUE(e2e::Eventually([] { return Naps().size() == 1; }, e2e::kLong));
  EXPECT_OK(node_.ShimDelete(box.id(), box.bundle()));
  EXPECT_TRUE(e2e::Eventually([] { return Naps().empty(); })) << e2e::Describe(Naps());
}

/// As at the start of a containerd whose containers have ended meanwhile.
TEST_F(HangingRuntime, InDeletesIsDoneWithout) {
  std::vector<Box*> ended;
  for (int i = 0; i < 8; ++i) {
    ended.push_back(&Ended("ended" + std::to_string(i), "wrapped"));
  }
  const Box& neighbour = Running("neighbour", "wrapped");
  Hang("delete", true);
  for (const Box* box : ended) {
    BeginDelete(*box);
  }
  ASSERT_TRUE(e2e::Eventually([] { return Naps().size() == 8; }, e2e::kLong));
  ExpectWorks(neighbour, "x");
  for (Patient& one : calls_) {
    EXPECT_OK(one.Get());
  }
  EXPECT_TRUE(e2e::Eventually([] { return Naps().empty(); })) << e2e::Describe(Naps());
  EXPECT_THAT(node_.Log(), HasSubstr("taking 'ended0' apart without it"));
}

TEST_F(HangingRuntime, InMoreDeletesThanThereAreWorkersHoldsNobodyElseUp) {
  constexpr size_t kDeletes = 12;
  std::vector<Box*> ended;
  for (size_t i = 0; i < kDeletes; ++i) {
    ended.push_back(&Ended("ended" + std::to_string(i), "patient"));
  }
  const Box& neighbour = Running("neighbour", "patient");
  Hang("delete", true);
  for (const Box* box : ended) {
    BeginDelete(*box);
  }
  ASSERT_TRUE(e2e::Eventually([] { return Naps().size() == kDeletes; }, e2e::kLong));
  ExpectWorks(neighbour, "x");
  Hang("delete", false);
  EndNaps();
  for (Patient& one : calls_) {
    EXPECT_OK(one.Get());
  }
}

}  // namespace
}  // namespace gantry::contract
