// SPDX-License-Identifier: Apache-2.0
//
// A new engine in the place of one that works, or that stands still: what runs goes on,
// and a new one that cannot take it up changes nothing.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "core/store/checksum.h"
#include "core/store/record.h"
#include "proto/gantry/record.pb.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

Result<record::v1::Record> ReadRaw(const std::string& bundle) {
  GANTRY_TRY(const std::string bytes, ReadFile(store::PathOf(bundle), store::kMaxRecordBytes));
  record::v1::Record record;
  if (!record.ParseFromString(bytes)) {
    return Fail(Code::kDataLoss, "parse {}", store::PathOf(bundle));
  }
  return record;
}

/// The schema of the record as it is on disk; 0: it cannot be read.
uint32_t SchemaOf(const std::string& bundle) {
  const auto record = ReadRaw(bundle);
  EXPECT_OK(record);
  return record ? record->schema() : 0;
}

/// Has the record be as an engine with another schema leaves it.
Status SetSchema(const std::string& bundle, uint32_t schema) {
  GANTRY_TRY(record::v1::Record record, ReadRaw(bundle));
  record.set_schema(schema);
  record.clear_checksum();
  if (schema < 2) {
    record.clear_rootfs();
    record.clear_shared_pids();
    record.clear_netns_path();
    auto& execs = *record.mutable_execs();
    execs.erase(std::remove_if(execs.begin(), execs.end(),
                               [](const record::v1::Exec& exec) {
                                 return exec.state() ==
                                        static_cast<uint32_t>(store::State::kDeleting);
                               }),
                execs.end());
  }
  return ReplaceFile(store::PathOf(bundle), store::Seal(record.SerializeAsString()), 0600);
}

/// Keeper and engine of this test alone, whose configuration it changes.
class UpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    NodeAdditions more;
    more.sections = Format("hang: {{after: {}}}\n", HangsAfter());
    ASSERT_EQ(node_.Start(more), "");
  }

  virtual const char* HangsAfter() const { return "1s"; }

  std::string ConfigPath() const { return node_.root() + "/gantry.yaml"; }

  /// A container that waits for its stdin.
  Box& Running() {
    EXPECT_TRUE(box_.Announce());
    EXPECT_OK(box_.Create());
    EXPECT_OK(box_.Start());
    return box_;
  }

  void ExpectAllIsWell(Box& box) {
    const auto state = box.State();
    EXPECT_OK(state);
    EXPECT_EQ(state ? state->status() : 0, 2) << "RUNNING";
    EXPECT_OK(box.Exec("x", {"sh", "-c", "exit 5"}));
    EXPECT_OK(box.Start("x"));
    const auto ended = box.Wait("x");
    EXPECT_OK(ended);
    EXPECT_EQ(ended ? ended->exit_status() : 0, 5U);
    EXPECT_OK(box.Delete("x"));
  }

  Node node_;
  Box box_{node_, "one", "runc", BoxOptions{.args = {"sleep", "1000"}}};
};

TEST_F(UpgradeTest, TakesUpWhatRuns) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  const auto upgraded = node_.Upgrade();
  ASSERT_OK(upgraded);
  EXPECT_NE(*upgraded, old);
  EXPECT_EQ(node_.Engine(), *upgraded);
  EXPECT_TRUE(e2e::WaitGone(old));
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithAWrongConfiguration) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  e2e::WriteText(ConfigPath(), "version: 1\nhandler: {}\n");
  const auto refused = node_.Upgrade();
  EXPECT_CODE(refused, kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("the new engine refuses"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("gantry.yaml:2:1': handler: unknown key"));
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithoutTheBackendOfWhatRuns) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  e2e::WriteText(ConfigPath(),
                 "version: 1\nbackends:\n  runc: {path: '" + node_.root() + "/none.so'}\n");
  const auto refused = node_.Upgrade();
  EXPECT_CODE(refused, kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("backend 'runc', which 'one' runs with"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("none.so"));
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, TakesUpRecordsOfTheSchemaBefore) {
  PodBox pod(node_, "pod", "runc");
  ASSERT_TRUE(pod.Announce());
  ASSERT_OK(pod.Create());
  ASSERT_OK(pod.Start());
  Box member(node_, "member", "runc", BoxOptions{.group = pod.id()});
  member.Join(pod.client().path());
  ASSERT_OK(member.Create());
  ASSERT_OK(member.Start());
  Box& box = Running();
  ASSERT_OK(box.Exec("lives", {"sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.01; done"}));
  ASSERT_OK(box.Start("lives"));
  ASSERT_OK(box.Exec("gone", {"sh", "-c", "exit 5"}));
  ASSERT_OK(box.Start("gone"));
  ASSERT_OK(box.Wait("gone"));
  ASSERT_OK(box.Delete("gone"));
  for (const std::string& bundle : {pod.bundle(), member.bundle(), box.bundle()}) {
    ASSERT_EQ(SchemaOf(bundle), store::kSchema);
    ASSERT_OK(SetSchema(bundle, store::kOldestSchema));
  }
  ASSERT_OK(node_.Upgrade());

  EXPECT_OK(box.Kill(SIGTERM, "lives"));
  const auto ended = box.Wait("lives");
  EXPECT_OK(ended);
  EXPECT_EQ(ended ? ended->exit_status() : 0, 9U);
  EXPECT_OK(box.Delete("lives"));
  ExpectAllIsWell(box);
  EXPECT_EQ(SchemaOf(box.bundle()), store::kSchema) << "what is written next is of today";
  ExpectAllIsWell(member);
  const auto status = pod.GetStatus();
  EXPECT_OK(status);
  EXPECT_EQ(status ? status->state() : "", "SANDBOX_READY");
  EXPECT_OK(member.Finish());
  EXPECT_OK(box.Finish());
  EXPECT_OK(pod.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithRecordsOfALaterSchema) {
  // What an older gantryd sees where a newer one has been.
  Box& box = Running();
  const pid_t old = node_.Engine();
  ASSERT_OK(SetSchema(box.bundle(), store::kSchema + 1));
  const auto refused = node_.Upgrade();
  EXPECT_CODE(refused, kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("the new engine refuses"));
  EXPECT_THAT(MessageOf(refused), HasSubstr(store::PathOf(box.bundle())));
  EXPECT_THAT(MessageOf(refused),
              HasSubstr("schema 3 is of a later gantry, this one reads up to 2"));
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(node_.Upgrade()) << "the record is of today again";
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, IsRefusedWithAProgramThatIsNoEngine) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  for (const char* program : {"/none/gantryd", "/bin/true"}) {
    EXPECT_CODE(node_.Upgrade(program), kFailedPrecondition) << program;
  }
  EXPECT_EQ(node_.Engine(), old);
  ExpectAllIsWell(box);
  EXPECT_OK(box.Finish());
}

TEST_F(UpgradeTest, ReplacesAnEngineThatStandsStill) {
  Box& box = Running();
  const pid_t old = node_.Engine();
  ASSERT_TRUE(Signal(old, SIGSTOP));
  // The next one answers this.
  ExpectAllIsWell(box);
  EXPECT_TRUE(e2e::WaitGone(old));
  const auto keeper = node_.Query();
  ASSERT_OK(keeper);
  EXPECT_EQ(keeper->engine_hangs, 1U);
  EXPECT_OK(box.Finish());
}

/// On a node whose engine may stand still for long.
class PatientUpgrade : public UpgradeTest {
 protected:
  const char* HangsAfter() const override { return "10m"; }
};

TEST_F(PatientUpgrade, WaitsForNobodyWhoStandsStill) {
  Box& box = Running();
  const pid_t first = node_.Engine();
  ASSERT_OK(node_.Upgrade());
  EXPECT_TRUE(e2e::WaitGone(first));
  ExpectAllIsWell(box);
  const pid_t second = node_.Engine();
  ASSERT_TRUE(Signal(second, SIGSTOP));
  ASSERT_OK(node_.Upgrade());
  EXPECT_TRUE(e2e::WaitGone(second));
  ExpectAllIsWell(box);
  const auto keeper = node_.Query();
  ASSERT_OK(keeper);
  EXPECT_EQ(keeper->engine_hangs, 0U) << "it was replaced on request";
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
