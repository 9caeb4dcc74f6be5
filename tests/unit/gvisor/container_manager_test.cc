// SPDX-License-Identifier: Apache-2.0
//
// What goes to a sentry and what is made of its answers.
#include "plugins/gvisor/sentry/container_manager.h"

#include <unistd.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/unit/gvisor/fake_sentry.h"

namespace gantry::gvisor {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

class ContainerManagerTest : public testing::Test {
 protected:
  os::TempDir folder_ = os::TempDir::Create().value();
  ContainerManager manager_{folder_.path() + "/control.sock"};
  /// The next answer, and what was asked last.
  FakeAnswer answer_ = FakeAnswer::Of(Json::object());
  Json asked_;
  size_t fds_ = 0;
  FakeSentry sentry_{manager_.client().path(),
                     [this](const Json& request, std::vector<UniqueFd>& fds) {
                       asked_ = request;
                       fds_ = fds.size();
                       return answer_;
                     }};
};

TEST_F(ContainerManagerTest, StartsARoot) { EXPECT_EQ(StartRootArg("p1"), R"("p1")"); }

TEST_F(ContainerManagerTest, StartsASubcontainer) {
  ASSERT_TRUE(manager_.CreateSubcontainer("k1", nullptr, Soon()));
  EXPECT_EQ(asked_["arg"], Json::parse(R"({"CID":"k1"})"));
  Subcontainer container;
  container.id = "k1";
  container.spec_json = R"({"ociVersion":"1.0"})";
  container.conf_json = R"({"DirectFS":true})";
  container.mounts = {{MountConf::Lower::kGofer, MountConf::Upper::kSelf},
                      {MountConf::Lower::kErofs, MountConf::Upper::kMemory}};
  container.filestores = 1;
  const Json arg = Json::parse(StartSubcontainerArg(container));
  EXPECT_EQ(arg["Spec"]["ociVersion"], "1.0");
  EXPECT_EQ(arg["Conf"]["DirectFS"], true);
  EXPECT_EQ(arg["NumGoferFilestoreFDs"], 1);
  EXPECT_EQ(arg["GoferMountConfs"],
            Json::parse(R"([{"upper":2,"lower":1},{"upper":1,"lower":2}])"));
}

TEST_F(ContainerManagerTest, WritesMountConfsAsTheFlagHasThem) {
  EXPECT_EQ((MountConf{MountConf::Lower::kGofer, MountConf::Upper::kSelf}).Text(), "lisafs:self");
  EXPECT_EQ((MountConf{MountConf::Lower::kErofs, MountConf::Upper::kMemory}).Text(),
            "erofs:memory");
  EXPECT_EQ((MountConf{MountConf::Lower::kGofer, MountConf::Upper::kNone}).Text(), "lisafs:none");
}

TEST_F(ContainerManagerTest, ExecutesAProcess) {
  ExecArgs args;
  args.container = "k1";
  args.argv = {"sh", "-c", "id"};
  args.uid = 1000;
  const Json arg = Json::parse(ExecuteArg(args));
  EXPECT_EQ(arg["argv"], Json::parse(R"(["sh","-c","id"])"));
  EXPECT_EQ(arg["KUID"], 1000);
  EXPECT_TRUE(arg["Capabilities"].is_null());
  EXPECT_EQ(arg["GuestFDs"], Json::parse("[0,1,2]"));
  EXPECT_EQ(*ReadPid({.result = "7"}), 7);
  EXPECT_EQ(ReadPid({.result = "{}"}).error().cause, urpc::Cause::kProtocol);
}

TEST_F(ContainerManagerTest, HandsOverTheNetwork) {
  const UniqueFd socket(dup(0));
  const std::array fds = {socket.get()};
  ASSERT_TRUE(manager_.SetNetworkArgs(R"({"PCAP":false})", fds, Soon()));
  EXPECT_EQ(asked_["method"], "containerManager.SetNetworkArgs");
  EXPECT_EQ(asked_["arg"], Json::parse(R"({"PCAP":false})"));
  EXPECT_EQ(fds_, 1U);
}

TEST_F(ContainerManagerTest, TellsHowSomethingEnded) {
  for (const auto& [word, status] : std::vector<std::pair<uint32_t, uint32_t>>{
           {0, 0}, {0x700, 7}, {0x9, 137}, {0x8b, 139}, {0xff00, 255}}) {
    EXPECT_EQ(WaitWord{word}.status(), status) << word;
  }
  answer_ = FakeAnswer::Of(0x700);
  auto connection = urpc::Connection::Open(manager_.client().path(), Soon());
  ASSERT_TRUE(connection);
  const std::string arg = WaitPidArg("k1", 9);
  ASSERT_TRUE(connection->Send({.method = kWaitPid, .arg = arg}, Soon()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ContainerManager::PeekWait(*connection, Soon())->status(), 7U) << "it stays";
  }
  EXPECT_EQ(asked_["arg"], Json::parse(R"({"PID":9,"CID":"k1"})"));
}

TEST_F(ContainerManagerTest, KnowsTheCallsByTheirNames) {
  const UniqueFd replica(dup(0));
  ASSERT_TRUE(manager_.CreateSubcontainer("k1", &replica, Soon()));
  EXPECT_EQ(fds_, 1U);
  ASSERT_TRUE(manager_.DestroySubcontainer("k1", Soon()));
  EXPECT_EQ(asked_, Json::parse(R"({"method":"containerManager.DestroySubcontainer","arg":"k1"})"));
}

TEST_F(ContainerManagerTest, SendsSignals) {
  ASSERT_TRUE(manager_.Signal({"k1", 9, SignalMode::kForeground}, 28, Soon()));
  EXPECT_EQ(asked_["arg"], Json::parse(R"({"CID":"k1","Signo":28,"PID":9,"Mode":2})"));
}

TEST_F(ContainerManagerTest, ListsProcesses) {
  answer_ = FakeAnswer::Of(Json::parse(R"([{"uid":65534,"pid":9,"ppid":1,"cmd":"sleep"}, 7])"));
  const auto two = manager_.Processes("k1", Soon());
  ASSERT_TRUE(two);
  ASSERT_THAT(*two, SizeIs(2));
  EXPECT_EQ(two->front().pid, 9U);
  EXPECT_EQ(two->front().parent, 1U);
  EXPECT_EQ(two->front().uid, 65534U);
  EXPECT_EQ(two->front().command, "sleep");
  answer_ = FakeAnswer::Of(nullptr);
  EXPECT_THAT(*manager_.Processes("k1", Soon()), IsEmpty());
}

// As runsc 20240729 and 2026-09 answer, with and without a cgroup mount.
TEST_F(ContainerManagerTest, ReadsWhatIsUsed) {
  answer_ = FakeAnswer::Of(Json::parse(
      R"({"event":{"type":"stats","id":"c1","data":{"cpu":{"usage":{}},
          "memory":{"usage":{"limit":0,"usage":2031616}},"pids":{"current":1}}},
          "containerUsage":{"c1":20000000,"c2":5}})"));
  const auto newer = manager_.Event("c1", Soon());
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->memory_bytes, 2031616U);
  EXPECT_EQ(newer->processes, 1U);
  ASSERT_TRUE(newer->cpu);
  EXPECT_EQ(newer->cpu->own_ns, 20000000U);
  EXPECT_EQ(newer->cpu->all_ns, 20000005U);
  EXPECT_FALSE(manager_.Event("c3", Soon())->cpu);
  answer_ = FakeAnswer::Of(Json::parse(
      R"({"event":{"data":{"cpu":{"usage":{"total":5}},"memory":{"usage":{}},"pids":{}}},
          "containerUsage":null})"));
  const auto older = manager_.Event("c1", Soon());
  ASSERT_TRUE(older);
  ASSERT_TRUE(older->cpu);
  EXPECT_EQ(older->cpu->own_ns, 5U);
  EXPECT_EQ(older->memory_bytes, 0U);
  EXPECT_EQ(older->processes, 0U);
}

TEST_F(ContainerManagerTest, TakesNothingElseForWhatIsUsed) {
  for (const char* text : {"7", "null", "{}", R"({"event":{"data":{"memory":{"usage":{}}}}})",
                           R"({"event":{"data":{"memory":{"usage":3},"pids":{}}}})"}) {
    answer_ = FakeAnswer::Of(Json::parse(text));
    const auto usage = manager_.Event("c1", Soon());
    ASSERT_FALSE(usage) << text;
    EXPECT_EQ(usage.error().cause, urpc::Cause::kProtocol);
  }
}

Json FileResults(std::initializer_list<const char*> values) {
  Json results = Json::array();
  for (const char* value : values) {
    results.push_back({{"value", value == nullptr ? "no such control file" : value},
                       {"is_error", value == nullptr}});
  }
  return {{"results", results}};
}

TEST_F(ContainerManagerTest, ReadsTheTimesOfTheSentrysCgroups) {
  answer_ = FakeAnswer::Of(FileResults({"5020000000", "1530000000", nullptr, nullptr}));
  const auto v1 = manager_.ReadCpuTimes("c1", Soon());
  ASSERT_TRUE(v1);
  EXPECT_EQ(v1->own_ns, 1530000000U);
  EXPECT_EQ(v1->all_ns, 5020000000U);
  const Json files = asked_["arg"]["Args"];
  ASSERT_THAT(files, SizeIs(4));
  EXPECT_EQ(files[1], Json::parse(R"({"file":{"controller":"cpuacct","path":"/c1",
                                              "name":"cpuacct.usage"}})"));
  answer_ = FakeAnswer::Of(FileResults(
      {nullptr, nullptr, "usage_usec 1030000\nuser_usec 9", "usage_usec 7\nuser_usec 9"}));
  const auto v2 = manager_.ReadCpuTimes("c1", Soon());
  ASSERT_TRUE(v2);
  EXPECT_EQ(v2->own_ns, 7000U);
  EXPECT_EQ(v2->all_ns, 1030000000U);
}

TEST_F(ContainerManagerTest, SaysThatThereAreNoSuchCgroups) {
  answer_ = FakeAnswer::Of(FileResults({"5020000000", nullptr, nullptr, nullptr}));
  EXPECT_EQ(manager_.ReadCpuTimes("c1", Soon()).error().cause, urpc::Cause::kRefused);
  answer_ = FakeAnswer::Of(FileResults({"-1", "x", "usage_usec", ""}));
  EXPECT_EQ(manager_.ReadCpuTimes("c1", Soon()).error().cause, urpc::Cause::kRefused);
  for (const char* text : {"7", "null", R"({"results":null})", R"({"results":[7]})"}) {
    answer_ = FakeAnswer::Of(Json::parse(text));
    EXPECT_EQ(manager_.ReadCpuTimes("c1", Soon()).error().cause, urpc::Cause::kProtocol) << text;
  }
}

TEST_F(ContainerManagerTest, ReadsTheUsageOfTheSentrysCgroups) {
  answer_ = FakeAnswer::Of(FileResults({"3", "40000", nullptr}));
  const auto v1 = manager_.ReadUsage("c1", Soon());
  ASSERT_TRUE(v1);
  EXPECT_EQ(v1->processes, 3U);
  EXPECT_EQ(v1->memory_bytes, 40000U);
  EXPECT_FALSE(v1->cpu);
  EXPECT_EQ(asked_["arg"]["Args"][0],
            Json::parse(R"({"file":{"controller":"pids","path":"/c1","name":"pids.current"}})"));
  answer_ = FakeAnswer::Of(FileResults({"3", nullptr, "50000"}));
  EXPECT_EQ(manager_.ReadUsage("c1", Soon())->memory_bytes, 50000U);
  for (const auto& none : {FileResults({nullptr, "40000", nullptr}),
                           FileResults({"3", nullptr, nullptr}), FileResults({"3", "x", "-1"})}) {
    answer_ = FakeAnswer::Of(none);
    EXPECT_EQ(manager_.ReadUsage("c1", Soon()).error().cause, urpc::Cause::kRefused);
  }
  answer_ = FakeAnswer::Of(FileResults({"3"}));
  EXPECT_EQ(manager_.ReadUsage("c1", Soon()).error().cause, urpc::Cause::kProtocol);
}

TEST_F(ContainerManagerTest, TellsStates) {
  answer_ = FakeAnswer::Of(3);
  EXPECT_EQ(*manager_.State("k1", Soon()), RuntimeState::kStopped);
  answer_ = FakeAnswer::Of(9);
  EXPECT_EQ(manager_.State("k1", Soon()).error().cause, urpc::Cause::kProtocol);
}

}  // namespace
}  // namespace gantry::gvisor
