// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/show.h"

#include <csignal>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/json.h>

namespace gantry::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'700'000'000'000'000'000;

void Add(v1::ListResponse& list, const char* ns, const char* id, const char* kind,
         const char* sandbox) {
  v1::Instance& instance = *list.add_instances();
  instance.set_namespace_(ns);
  instance.set_id(id);
  instance.set_kind(kind);
  instance.set_sandbox_id(sandbox);
  instance.set_handler("runc");
  instance.set_backend("runc");
  instance.set_state("running");
  instance.set_pid(42);
  instance.set_created_at_ns(kNow - 5'000'000'000);
  instance.set_memory_bytes(1536);
}

v1::ListResponse Pod() {
  v1::ListResponse list;
  Add(list, "k8s.io", "c2", "container", "pod");
  Add(list, "k8s.io", "alone", "container", "");
  Add(list, "k8s.io", "c1", "container", "pod");
  Add(list, "k8s.io", "pod", "sandbox", "");
  Add(list, "default", "x", "container", "");
  return list;
}

TEST(ListTable, PutsContainersBelowTheirSandbox) {
  EXPECT_EQ(
      ListTable(Pod(), kNow),
      "NAMESPACE  ID     KIND       SANDBOX  HANDLER  BACKEND  STATE    PID  MEMORY   EXECS  AGE\n"
      "default    x      container  -        runc     runc     running  42   1.5 KiB  0      5s\n"
      "k8s.io     pod    sandbox    -        runc     runc     running  42   1.5 KiB  0      5s\n"
      "k8s.io     c1     container  pod      runc     runc     running  42   1.5 KiB  0      5s\n"
      "k8s.io     c2     container  pod      runc     runc     running  42   1.5 KiB  0      5s\n"
      "k8s.io     alone  container  -        runc     runc     running  42   1.5 KiB  0      5s\n");
}

TEST(CostTable, ShowsWhatASandboxCosts) {
  v1::ListResponse list;
  Add(list, "k8s.io", "c1", "container", "pod");
  Add(list, "k8s.io", "pod", "sandbox", "");
  v1::Instance& pod = *list.mutable_instances(1);
  pod.set_engine_cpu_ns(1'234'500'000);
  pod.set_calls(7);
  pod.set_buffered_bytes(2048);
  pod.set_unread_bytes(65'536);
  EXPECT_EQ(CostTable(list),
            "NAMESPACE  ID   KIND       SANDBOX  STATE    EXECS  CALLS  ENGINE-CPU  BUFFERED  "
            "UNREAD\n"
            "k8s.io     pod  sandbox    -        running  0      7      1.234s      2.0 KiB   "
            "64.0 KiB\n"
            "k8s.io     c1   container  pod      running  0      -      -           -         -\n");
  const auto json = oci::Json::Parse(ListJson(list), "list");
  ASSERT_TRUE(json.has_value());
  const auto items = json->Items();
  ASSERT_TRUE(items.has_value());
  uint64_t cpu = 0;
  EXPECT_TRUE((*items)[0]["engine_cpu_ns"].Read(cpu).has_value());
  EXPECT_EQ(cpu, 1'234'500'000U);
}

TEST(ListJson, IsAnArrayOfObjects) {
  EXPECT_EQ(ListJson(v1::ListResponse()), "[]\n");
  const auto json = oci::Json::Parse(ListJson(Pod()), "list");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  const auto items = json->Items();
  ASSERT_TRUE(items.has_value());
  ASSERT_EQ(items->size(), 5U);
  std::string created;
  EXPECT_TRUE((*items)[0]["created_at"].Read(created).has_value());
  EXPECT_EQ(created, "2023-11-14T22:13:15.000Z");
}

v1::InspectResponse OneContainer() {
  v1::InspectResponse answer;
  answer.mutable_instance()->set_id("c1");
  answer.set_bundle("/run/b");
  answer.set_options_json(R"({"BinaryName":"crun"})");
  answer.add_cgroups("/sys/fs/cgroup/x");
  answer.add_processes()->set_pid(42);
  v1::Process& exec = *answer.add_processes();
  exec.set_exec_id("e1");
  exec.set_exit_status(137);
  exec.set_exited_at_ns(kNow);
  return answer;
}

TEST(Inspect, ShowsProcessesAndTheirEnd) {
  const std::string text = InspectText(OneContainer(), kNow);
  EXPECT_THAT(text, HasSubstr("bundle      /run/b\n"));
  EXPECT_THAT(text, HasSubstr("cgroup      /sys/fs/cgroup/x\n"));
  EXPECT_THAT(text, HasSubstr("init     42"));
  EXPECT_THAT(text, HasSubstr("137   2023-11-14T22:13:20.000Z"));
}

TEST(Inspect, EmbedsOptionsAsJson) {
  const auto json = oci::Json::Parse(InspectJson(OneContainer()), "inspect");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  std::string binary;
  EXPECT_TRUE((*json)["options"]["BinaryName"].Read(binary).has_value());
  EXPECT_EQ(binary, "crun");
  v1::InspectResponse broken = OneContainer();
  broken.set_options_json("{");
  EXPECT_TRUE(oci::Json::Parse(InspectJson(broken), "inspect").has_value());
}

TEST(Status, ShowsBackendsThatWereRefused) {
  v1::StatusResponse status;
  status.set_version("0.1.0");
  v1::BackendStatus& backend = *status.add_backends();
  backend.set_name("gvisor");
  backend.set_error("writable for everyone");
  EXPECT_THAT(StatusText(status, {}, kNow), HasSubstr("writable for everyone"));
  EXPECT_TRUE(oci::Json::Parse(StatusJson(status, {}), "status").has_value());
}

TEST(Status, ShowsWhatBackendsCount) {
  v1::StatusResponse status;
  v1::BackendStatus& backend = *status.add_backends();
  backend.set_name("gvisor");
  EXPECT_THAT(StatusText(status, {}, kNow), Not(HasSubstr("COUNTS")));
  for (const auto& [handler, name, value] :
       {std::tuple("slow", "ready", 0), std::tuple("fast", "ready", 2),
        std::tuple("fast", "taken", 17)}) {
    v1::BackendCount& count = *backend.add_counts();
    count.set_handler(handler);
    count.set_name(name);
    count.set_value(static_cast<uint64_t>(value));
  }
  EXPECT_THAT(StatusText(status, {}, kNow), HasSubstr("BACKEND  HANDLER  COUNTS\n"
                                                      "gvisor   fast     ready 2, taken 17\n"
                                                      "gvisor   slow     ready 0\n"));
  const auto json = oci::Json::Parse(StatusJson(status, {}), "status");
  ASSERT_TRUE(json.has_value());
  const auto backends = (*json)["backends"].Items();
  ASSERT_TRUE(backends && backends->size() == 1);
  const auto counts = (*backends)[0]["counts"].Items();
  ASSERT_TRUE(counts && counts->size() == 3);
  uint64_t taken = 0;
  EXPECT_TRUE((*counts)[2]["value"].Read(taken).has_value());
  EXPECT_EQ(taken, 17U);
}

TEST(Status, ShowsWhatEnginesCrashOf) {
  link::KeeperStatus keeper;
  EXPECT_THAT(StatusText({}, keeper, kNow), Not(HasSubstr("left out")));
  keeper.engine_path = "/old/gantryd";
  keeper.fell_back_from = "/new/gantryd";
  keeper.fell_back_wait_status = SIGSEGV;
  keeper.requests_dropped = 4;
  link::InstanceAdded instance;
  instance.announce.id = "c1";
  instance.announce.ns = "k8s.io";
  keeper.instances.push_back(instance);
  instance.announce.id = "c2";
  instance.left_out = true;
  keeper.instances.push_back(instance);
  const std::string text = StatusText({}, keeper, kNow);
  EXPECT_THAT(text, HasSubstr("'/new/gantryd' was killed by signal 11 soon after the upgrade to "
                              "it; '/old/gantryd' is in charge again"));
  EXPECT_THAT(text, HasSubstr("4 call(s)"));
  EXPECT_THAT(text, HasSubstr("'gantryctl delete -n k8s.io c2' ends it"));
  EXPECT_THAT(text, Not(HasSubstr("c1")));
  const auto json = oci::Json::Parse(StatusJson({}, keeper), "status");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ((*json)["left_out"].Items()->size(), 1U);
}

TEST(Status, ShowsLostWorkers) {
  v1::StatusResponse status;
  status.set_lost_workers(5);
  v1::BackendStatus& backend = *status.add_backends();
  backend.set_name("runc");
  backend.set_lost_workers(4);
  const std::string text = StatusText(status, {}, kNow);
  EXPECT_THAT(text, HasSubstr("workers     5 lost\n"));
  EXPECT_THAT(text, HasSubstr("BACKEND  VERSION  SANDBOXES  LOST  FILE  ERROR\n"
                              "runc     -        0          4     -     -\n"));
  const auto json = oci::Json::Parse(StatusJson(status, {}), "status");
  ASSERT_TRUE(json.has_value());
  uint64_t lost = 0;
  EXPECT_TRUE((*json)["lost_workers"].Read(lost).has_value());
  EXPECT_EQ(lost, 5U);
}

TEST(Status, ShowsWhatTheKeeperSays) {
  link::KeeperStatus keeper;
  keeper.keeper_pid = 4711;
  keeper.engine_starts = 3;
  keeper.engine_hangs = 1;
  keeper.keeper_upgrades = 2;
  keeper.connections = 17;
  const std::string text = StatusText({}, keeper, kNow);
  EXPECT_THAT(text, HasSubstr("pid 4711"));
  EXPECT_THAT(text, HasSubstr("3 engine(s) started, 1 hung, upgraded 2 time(s)"));
  EXPECT_THAT(text, HasSubstr("connections 17"));
  const auto json = oci::Json::Parse(StatusJson({}, keeper), "status");
  ASSERT_TRUE(json.has_value());
  uint64_t connections = 0;
  EXPECT_TRUE((*json)["connections"].Read(connections).has_value());
  EXPECT_EQ(connections, 17U);
}

}  // namespace
}  // namespace gantry::ctl
