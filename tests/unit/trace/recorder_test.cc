// SPDX-License-Identifier: Apache-2.0
#include "core/trace/recorder.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "core/trace/ring.h"

namespace gantry::trace {
namespace {

constexpr Subject kSubject{"k8s.io", "c1", ""};

class RecorderTest : public testing::Test {
 protected:
  std::string path() const { return dir_.path() + "/" + kFileName; }

  std::vector<Step> Read() const {
    auto steps = ReadRing(dir_.path());
    EXPECT_TRUE(steps) << steps.error().message;
    return steps ? *steps : std::vector<Step>();
  }

  const os::TempDir dir_ = std::move(*os::TempDir::Create());
};

TEST_F(RecorderTest, HasAStepFromItsBeginOn) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));

  const OpenStep step = recorder.Begin(Kind::kCall, kSubject, "Create");

  ASSERT_EQ(Read().size(), 1U);
  EXPECT_EQ(Read()[0].what, "Create");
  EXPECT_FALSE(Read()[0].end);
  step.Ended(Code::kNotFound, "no bundle");
  ASSERT_TRUE(Read()[0].end);
  EXPECT_EQ(Read()[0].end->code, Code::kNotFound);
  EXPECT_EQ(Read()[0].end->detail, "no bundle");
}

TEST_F(RecorderTest, IsForRootAlone) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  struct stat info{};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(RecorderTest, EndsAStepByAResult) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  recorder.Begin(Kind::kCall, kSubject, "Kill").Ended(Status());
  recorder.Begin(Kind::kCall, kSubject, "Kill")
      .Ended(Result<int>(Fail(Code::kUnavailable, "it hangs")));

  const std::vector<Step> steps = Read();

  ASSERT_TRUE(steps.size() == 2 && steps[0].end && steps[1].end);
  EXPECT_EQ(steps[0].end->code, Code::kOk);
  EXPECT_EQ(steps[1].end->code, Code::kUnavailable);
  EXPECT_EQ(steps[1].end->detail, "it hangs");
}

TEST_F(RecorderTest, NotesWhatTakesNoTime) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  recorder.Note(Kind::kKeeper, kSubject, "announced", Code::kOk, "by the shim");
  ASSERT_EQ(Read().size(), 1U);
  ASSERT_TRUE(Read()[0].end);
  EXPECT_EQ(Read()[0].end->took_ns, 0);
  EXPECT_EQ(Read()[0].end->detail, "by the shim");
}

TEST_F(RecorderTest, GoesOnWhereAnotherHasEnded) {
  {
    Recorder before;
    ASSERT_TRUE(before.Open(dir_.path()));
    before.Begin(Kind::kCall, kSubject, "Create").Ended(Code::kOk);
    before.Begin(Kind::kCall, kSubject, "Start");
  }
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  recorder.Begin(Kind::kEngine, {}, kComeUp);

  const std::vector<Step> steps = Read();

  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].what, "Create");
  EXPECT_EQ(steps[1].what, "Start");
  EXPECT_FALSE(steps[1].end);
  EXPECT_EQ(steps[2].what, kComeUp);
  EXPECT_EQ(steps[2].number, 3U);
}

TEST_F(RecorderTest, KeepsTheLatestStepsInAFileOfFixedSize) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  for (uint64_t i = 1; i <= 2 * kSlots + 10; ++i) {
    recorder.Note(Kind::kCall, kSubject, Format("step {}", i));
  }

  const std::vector<Step> steps = Read();

  ASSERT_EQ(steps.size(), kSlots);
  EXPECT_EQ(steps.front().what, Format("step {}", kSlots + 11));
  EXPECT_EQ(steps.back().what, Format("step {}", 2 * kSlots + 10));
  struct stat info{};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_LE(static_cast<size_t>(info.st_size), kRingBytes);
}

TEST_F(RecorderTest, LeavesTheStepAloneThatHasTakenAPlace) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  const OpenStep old = recorder.Begin(Kind::kCall, kSubject, "Wait");
  for (uint64_t i = 0; i < kSlots; ++i) {
    recorder.Begin(Kind::kCall, kSubject, "Start");
  }

  old.Ended(Code::kInternal, "late");

  for (const Step& step : Read()) {
    ASSERT_EQ(step.what, "Start");
    ASSERT_FALSE(step.end);
  }
}

TEST_F(RecorderTest, BeginsAnewWhereTheFileIsSomethingElse) {
  for (const std::string& text :
       {std::string("text"), std::string(kRingBytes, 'x'), std::string()}) {
    ASSERT_TRUE(WriteFile(path(), text, 0600));
    Recorder recorder;
    ASSERT_TRUE(recorder.Open(dir_.path()));
    recorder.Note(Kind::kCall, kSubject, "Create");
    EXPECT_EQ(Read().size(), 1U);
  }
}

TEST_F(RecorderTest, RecordsNothingUntilItIsOpen) {
  Recorder recorder;
  const OpenStep step = recorder.Begin(Kind::kCall, kSubject, "Create");
  EXPECT_FALSE(step);
  step.Ended(Code::kOk);
  recorder.Note(Kind::kCall, kSubject, "Start");
  EXPECT_EQ(ReadRing(dir_.path()).error().code, Code::kNotFound);
}

TEST_F(RecorderTest, IsOffWhereItCannotOpen) {
  Recorder recorder;
  EXPECT_FALSE(recorder.Open(dir_.path() + "/absent"));
  EXPECT_FALSE(recorder.Begin(Kind::kCall, kSubject, "Create"));
}

TEST_F(RecorderTest, FollowsNoLink) {
  ASSERT_TRUE(WriteFile(dir_.path() + "/victim", "precious", 0600));
  ASSERT_EQ(symlink((dir_.path() + "/victim").c_str(), path().c_str()), 0);
  Recorder recorder;
  EXPECT_FALSE(recorder.Open(dir_.path()));
  EXPECT_EQ(*ReadFile(dir_.path() + "/victim", 100), "precious");
}

TEST_F(RecorderTest, CountsWhatItCannotWriteAndGoesOn) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir_.path()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);

  recorder.Begin(Kind::kCall, kSubject, "Create").Ended(Code::kOk);

  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(recorder.lost(), 2U);
  recorder.Note(Kind::kCall, kSubject, "Start");
  ASSERT_EQ(Read().size(), 1U);
  EXPECT_EQ(Read()[0].what, "Start");
}

TEST(ReadRing, SaysThatSomethingElseIsNone) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(WriteFile(dir->path() + "/" + kFileName, "no ring", 0600));
  EXPECT_EQ(ReadRing(dir->path()).error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace gantry::trace
