// SPDX-License-Identifier: Apache-2.0
//
// What a backend keeps of one process comes back to it with the next engine.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kMost = 4096;

class ProcessSaved : public TaskTest {
 protected:
  /// What every process that comes up keeps.
  void Keep(const std::string& blob) {
    backend_.UseProcess([this, blob](ProcessContext& context, bool recovered) {
      if (!recovered) {
        saved_ = context.Save(blob + context.exec().str());
      }
      return Status();
    });
  }

  std::string ExecOnRecord() {
    const store::Record record = RecordOf("c1");
    return record.execs.empty() ? "no exec" : record.execs.front().process.saved;
  }

  Status saved_;
};

TEST_F(ProcessSaved, ComesBackWithItsExec) {
  Run("c1");
  Keep("of ");
  RunExec("c1/e1");
  RunExec("c1/e2");
  ASSERT_TRUE(saved_);
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1 of e1"), 1U);
  EXPECT_EQ(backend_.Count("recover c1/e2 of e2"), 1U);
  // And with every engine after that.
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1 of e1"), 2U);
}

TEST_F(ProcessSaved, IsWhatWasKeptLast) {
  Run("c1");
  backend_.UseProcess([](ProcessContext& context, bool recovered) -> Status {
    if (recovered) {
      return context.Save("third");
    }
    GANTRY_CHECK_OK(context.Save("first"));
    return context.Save("second");
  });
  RunExec("c1/e1");
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1 second"), 1U);
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1 third"), 1U);
}

TEST_F(ProcessSaved, ComesBackWithItsInitBesideTheContainersState) {
  backend_.SaveState("", "the container's, ");
  Keep("the init's");
  Run("c1");
  ASSERT_TRUE(saved_);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1 the container's, the init's"), 1U);
  // Whoever deletes a container that has ended may need it.
  End("c1", 1);
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::STOPPED);
  EXPECT_EQ(backend_.Count("recover c1 the container's, the init's"), 2U);
}

TEST_F(ProcessSaved, OfAnExecGoesWithItsEnd) {
  Run("c1");
  Keep("of ");
  RunExec("c1/e1");
  Settle();
  EXPECT_EQ(ExecOnRecord(), "of e1");
  End("c1/e1", 0);
  Settle();
  EXPECT_EQ(ExecOnRecord(), "");
}

TEST_F(ProcessSaved, IsForgottenWhereTheStartNeverTookEffect) {
  Run("c1");
  Keep("of ");
  ASSERT_TRUE(Exec("c1/e1"));
  backend_.Hold("start c1/e1");
  SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  EXPECT_EQ(ExecOnRecord(), "of e1");
  backend_.FailNext("recover c1/e1", Error{Code::kAborted, 0, "it never ran", {}});
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::CREATED);
  EXPECT_EQ(backend_.Count("recover c1/e1 of e1"), 1U);
  backend_.UseProcess(nullptr);
  backend_.Release("start c1/e1");
  ASSERT_TRUE(Start("c1/e1", true));
  EXPECT_EQ(ExecOnRecord(), "");
}

TEST_F(ProcessSaved, IsRefusedAboveItsLimitAndWhatWasKeptStays) {
  Run("c1");
  Status refused;
  backend_.UseProcess([&refused](ProcessContext& context, bool recovered) -> Status {
    if (recovered) {
      return {};
    }
    GANTRY_CHECK_OK(context.Save(std::string(kMost, 'a')));
    refused = context.Save(std::string(kMost + 1, 'b'));
    return {};
  });
  RunExec("c1/e1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("c1/e1"), HasSubstr("4097 bytes, 4096")));
  EXPECT_EQ(ExecOnRecord(), std::string(kMost, 'a'));
}

TEST_F(ProcessSaved, ThatCannotBeWrittenIsRefusedAndWhatWasKeptStays) {
  Run("c1");
  const std::string record = store::PathOf(dir_.path() + "/c1");
  Status refused;
  backend_.UseProcess([&](ProcessContext& context, bool recovered) -> Status {
    if (recovered) {
      return {};
    }
    GANTRY_CHECK_OK(context.Save("first"));
    // A file does not take the place of a directory.
    std::filesystem::remove(record);
    std::filesystem::create_directories(record + "/in-the-way");
    refused = context.Save("second");
    std::filesystem::remove_all(record);
    return {};
  });
  RunExec("c1/e1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("save the state of 'c1/e1'"));
  EXPECT_EQ(ExecOnRecord(), "first");
  RestartEngine();
  EXPECT_EQ(State("c1/e1")->status(), pb::RUNNING);
  EXPECT_EQ(backend_.Count("recover c1/e1 first"), 1U);
}

}  // namespace
}  // namespace gantry::task
