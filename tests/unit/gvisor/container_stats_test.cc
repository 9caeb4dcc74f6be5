// SPDX-License-Identifier: Apache-2.0
//
// Measuring one container, with a sentry that answers as the test says and cgroups of plain
// files.
#include "plugins/gvisor/stats/container_stats.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/gvisor/fake_sentry.h"

namespace gantry::gvisor {
namespace {

using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

class ContainerStatsTest : public testing::Test {
 protected:
  ContainerStatsTest() {
    files_.Put("pod/cgroup.procs", "");
    SetHost(8'000'000);
  }

  void SetHost(uint64_t ns) { files_.Put("pod/cpuacct.usage", std::to_string(ns)); }

  FakeAnswer Answer(const Json& request) {
    if (request["method"] == "containerManager.Event") {
      return event_;
    }
    return request["arg"]["Args"][0]["file"]["controller"] == "pids" ? usage_ : times_;
  }

  static Json Event(uint64_t memory, uint64_t processes, uint64_t own, uint64_t other) {
    return {{"event",
             {{"data",
               {{"memory", {{"usage", {{"usage", memory}}}}},
                {"pids", {{"current", processes}}},
                {"cpu", {{"usage", Json::object()}}}}}}},
            {"containerUsage", {{"c1", own}, {"c2", other}}}};
  }

  static Json Times(uint64_t all, uint64_t own) {
    const Json none = {{"value", "no such control file"}, {"is_error", true}};
    return {{"results",
             {{{"value", std::to_string(all)}, {"is_error", false}},
              {{"value", std::to_string(own)}, {"is_error", false}},
              none,
              none}}};
  }

  /// From the sentry's cgroups.
  static Json Counted(uint64_t processes, uint64_t memory) {
    return {{"results",
             {{{"value", std::to_string(processes)}, {"is_error", false}},
              {{"value", std::to_string(memory)}, {"is_error", false}},
              {{"value", "no such control file"}, {"is_error", true}}}}};
  }

  Result<ContainerMetrics> Measure(ContainerStats& stats, bool is_alone = false) {
    return stats.Measure(manager_, Place(is_alone), Soon());
  }

  StatsPlace Place(bool is_alone = false) const {
    return {.cgroups = {files_.path() + "/pod"}, .is_alone = is_alone};
  }

  Code CodeOfFailure() {
    const auto measured = Measure(stats_);
    EXPECT_FALSE(measured);
    if (!measured) {
      EXPECT_NE(measured.error().message.find("measure container 'c1': "), std::string::npos)
          << measured.error().message;
    }
    return measured ? Code::kUnknown : measured.error().code;
  }

  os::FakeCgroupFs files_;
  FakeAnswer event_ = FakeAnswer::Of(Event(40'000, 3, 0, 0));
  FakeAnswer times_ = FakeAnswer::Of(Times(4'000'000, 1'000'000));
  FakeAnswer usage_ = FakeAnswer::Refusing("unknown method");
  ContainerManager manager_{files_.path() + "/control.sock"};
  FakeSentry sentry_{manager_.client().path(),
                     [this](const Json& request, auto&) { return Answer(request); }};
  ContainerStats stats_{"c1", files_.path()};
};

TEST_F(ContainerStatsTest, AreWhatSentryAndHostSay) {
  files_.Put("pod/memory.limit_in_bytes", "64000\n");
  const auto measured = Measure(stats_);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->cpu.usage_ns, 2'000'000U) << "a fourth of the host's";
  EXPECT_EQ(measured->memory.usage_bytes, 40'000U);
  EXPECT_EQ(measured->memory.limit_bytes, 64'000U);
  EXPECT_EQ(measured->pids.current, 3U);
}

TEST_F(ContainerStatsTest, HaveAllTimeOfOneThatIsAlone) {
  EXPECT_EQ(Measure(stats_, true)->cpu.usage_ns, 8'000'000U);
}

TEST_F(ContainerStatsTest, OfOneThatIsAloneNeedNoSharesOfTheSentrys) {
  times_ = FakeAnswer::Of("no answer");
  EXPECT_EQ(Measure(stats_, true)->cpu.usage_ns, 8'000'000U);
  EXPECT_FALSE(Measure(stats_, false));
}

TEST_F(ContainerStatsTest, AreWrittenDownWhenTheyChange) {
  ASSERT_TRUE(Measure(stats_));
  const std::string path = files_.path() + "/cpu";
  ASSERT_TRUE(RemoveFile(path));
  ASSERT_TRUE(Measure(stats_));
  EXPECT_FALSE(std::filesystem::exists(path)) << "it would say the same";
  SetHost(10'000'000);
  times_ = FakeAnswer::Of(Times(6'000'000, 3'000'000));
  ASSERT_TRUE(Measure(stats_));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ContainerStatsTest, DoNotRunBackwardsOverARestart) {
  ASSERT_TRUE(Measure(stats_));
  SetHost(10'000'000);
  times_ = FakeAnswer::Of(Times(6'000'000, 3'000'000));
  EXPECT_EQ(Measure(stats_)->cpu.usage_ns, 4'000'000U);
  ContainerStats again("c1", files_.path());
  EXPECT_EQ(Measure(again)->cpu.usage_ns, 4'000'000U);
  SetHost(11'000'000);
  times_ = FakeAnswer::Of(Times(7'000'000, 4'000'000));
  EXPECT_EQ(Measure(again)->cpu.usage_ns, 5'000'000U);
}

TEST_F(ContainerStatsTest, BeginAnewWithADamagedFile) {
  files_.Put("cpu", "x");
  EXPECT_EQ(Measure(stats_)->cpu.usage_ns, 2'000'000U);
}

TEST_F(ContainerStatsTest, LeaveNothing) {
  ASSERT_TRUE(Measure(stats_));
  EXPECT_TRUE(Exists(files_.path() + "/cpu"));
  EXPECT_TRUE(stats_.Forget());
  EXPECT_FALSE(Exists(files_.path() + "/cpu"));
  EXPECT_TRUE(stats_.Forget());
}

TEST_F(ContainerStatsTest, AreGivenWhereNothingCanBeWritten) {
  ContainerStats stats("c1", "/nowhere/at/all");
  EXPECT_EQ(Measure(stats)->cpu.usage_ns, 2'000'000U);
}

TEST_F(ContainerStatsTest, DoWithoutTheSentrysCgroups) {
  event_ = FakeAnswer::Of(Event(40'000, 3, 2'000'000, 6'000'000));
  for (const FakeAnswer& times :
       {FakeAnswer::Refusing("unknown method"),
        FakeAnswer::Of({{"results",
                         {{{"value", "no such file or directory"}, {"is_error", true}},
                          {{"value", ""}, {"is_error", true}},
                          {{"value", ""}, {"is_error", true}},
                          {{"value", ""}, {"is_error", true}}}}})}) {
    times_ = times;
    ContainerStats stats("c1", "/nowhere/at/all");
    const auto measured = Measure(stats);
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_EQ(measured->cpu.usage_ns, 2'000'000U);
  }
}

TEST_F(ContainerStatsTest, DoWithoutTheNodesInterfaces) {
  event_ = FakeAnswer::Refusing("failed to get raw line");
  usage_ = FakeAnswer::Of(Counted(3, 40'000));
  const auto measured = Measure(stats_);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->cpu.usage_ns, 2'000'000U);
  EXPECT_EQ(measured->memory.usage_bytes, 40'000U);
  EXPECT_EQ(measured->pids.current, 3U);
  usage_ = FakeAnswer::Of(Counted(0, 0));
  EXPECT_EQ(CodeOfFailure(), Code::kNotFound);
  usage_ = FakeAnswer::Refusing("unknown method");
  const auto without_cgroups = Measure(stats_);
  ASSERT_FALSE(without_cgroups);
  EXPECT_NE(without_cgroups.error().message.find("failed to get raw line"), std::string::npos);
}

TEST_F(ContainerStatsTest, OfOneThatHasEndedAreNotThere) {
  event_ = FakeAnswer::Of(Event(0, 0, 0, 0));
  EXPECT_EQ(CodeOfFailure(), Code::kNotFound);
  event_ = FakeAnswer::Refusing("container \"c1\" not found");
  EXPECT_EQ(CodeOfFailure(), Code::kNotFound);
}

TEST_F(ContainerStatsTest, OfOneThatHasEndedAreWhatItHadUsed) {
  files_.Put("pod/memory.limit_in_bytes", "64000\n");
  ASSERT_TRUE(Measure(stats_));
  SetHost(9'000'000);
  times_ = FakeAnswer::Of(Times(5'000'000, 2'000'000));
  const auto ended = stats_.MeasureIdle(&manager_, Place(), false, Soon());
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->cpu.usage_ns, 3'000'000U) << "the sentry's cgroup outlives it";
  EXPECT_EQ(ended->memory.usage_bytes, 0U);
  EXPECT_EQ(ended->memory.limit_bytes, 64'000U);
  EXPECT_EQ(ended->pids.current, 0U);
  EXPECT_EQ(ended->memory.oom_kills, 0U);
}

TEST_F(ContainerStatsTest, OfASentryThatHasEndedAreWhatTheyWere) {
  ASSERT_TRUE(Measure(stats_));
  SetHost(9'000'000);
  const auto ended = stats_.MeasureIdle(nullptr, Place(), true, Soon());
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->cpu.usage_ns, 2'000'000U);
  EXPECT_EQ(ended->memory.oom_kills, 1U) << "memory has ended it";
  ContainerStats alone("c1", "/nowhere/at/all");
  EXPECT_EQ(alone.MeasureIdle(nullptr, Place(true), false, Soon())->cpu.usage_ns, 9'000'000U);
}

TEST_F(ContainerStatsTest, OfASentryThatLeavesAreNotThere) {
  event_ = {"", {}, true};
  EXPECT_EQ(CodeOfFailure(), Code::kNotFound);
  event_ = FakeAnswer::Of(Event(40'000, 3, 0, 0));
  times_ = {"", {}, true};
  EXPECT_EQ(CodeOfFailure(), Code::kNotFound);
}

TEST_F(ContainerStatsTest, OfAnAnswerThatIsNoneAreAnError) {
  event_ = FakeAnswer::Of(7);
  EXPECT_EQ(CodeOfFailure(), Code::kInternal);
  event_ = FakeAnswer{"{]", {}, true};
  EXPECT_EQ(CodeOfFailure(), Code::kInternal);
  event_ = FakeAnswer::Of(Event(40'000, 3, 0, 0));
  times_ = FakeAnswer::Of(7);
  EXPECT_EQ(CodeOfFailure(), Code::kInternal);
}

TEST_F(ContainerStatsTest, WaitForNobodyLongerThanTheyMay) {
  std::promise<void> asked;
  std::promise<void> go_on;
  std::atomic<int> questions = 0;
  ContainerManager manager(files_.path() + "/slow.sock");
  FakeSentry slow(manager.client().path(), [&](const Json& request, auto&) {
    if (questions++ == 0) {
      asked.set_value();
      go_on.get_future().wait();
    }
    return Answer(request);
  });
  auto first =
      std::async(std::launch::async, [&] { return stats_.Measure(manager, Place(), Soon()); });
  asked.get_future().wait();
  const auto second = stats_.Measure(manager, Place(), std::chrono::steady_clock::now());
  go_on.set_value();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(first.get());
}

}  // namespace
}  // namespace gantry::gvisor
