// SPDX-License-Identifier: Apache-2.0
//
// Which spans a container's life has, for callers with a trace and for those without.
#include "core/trace/spans.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/trace/recorder.h"
#include "core/trace/span_context.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

constexpr char kTraced[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kUnsampled[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

class TaskSpans : public TaskTest {
 protected:
  TaskSpans() { engine_->recorder().Export(&spans_); }

  ~TaskSpans() override { engine_->recorder().Export(nullptr); }

  void CallWith(const std::string& traceparent) {
    callers_metadata_ = {{"traceparent", traceparent}};
  }

  /// Of what has ended until now.
  void Collect() { std::ranges::move(spans_.Take(1000), std::back_inserter(all_)); }

  /// The one of that name, "call Create c1".
  std::optional<trace::Span> Find(const std::string& name) {
    Collect();
    const auto found = std::ranges::find_if(all_, [&](const trace::Span& span) {
      return Format("{} {} {}{}", trace::KindName(span.kind), span.what, span.id,
                    span.exec.empty() ? "" : "/" + span.exec) == name;
    });
    EXPECT_NE(found, all_.end()) << name;
    return found == all_.end() ? std::nullopt : std::optional(*found);
  }

  bool IsIn(const std::string& child, const std::string& parent) {
    const auto inner = Find(child);
    const auto outer = Find(parent);
    return inner && outer && inner->parent == outer->context.span &&
           inner->context.trace == outer->context.trace;
  }

  trace::Spans spans_{{.sample = 0}};
  std::vector<trace::Span> all_;
};

TEST_F(TaskSpans, OfACallerWithATraceAreInThere) {
  CallWith(kTraced);
  Run("c1");
  RunExec("c1/e1");
  const auto caller = trace::ParseTraceparent(kTraced, "");
  for (const char* call :
       {"call Create c1", "call Start c1", "call Exec c1/e1", "call Start c1/e1"}) {
    const auto span = Find(call);
    ASSERT_TRUE(span);
    EXPECT_EQ(span->context.trace, caller->trace) << call;
    EXPECT_EQ(span->parent, caller->span) << call;
  }
  EXPECT_TRUE(IsIn("backend create c1", "call Create c1"));
  EXPECT_TRUE(IsIn("backend start c1", "call Start c1"));
  EXPECT_TRUE(IsIn("backend start c1/e1", "call Start c1/e1"));
  End("c1/e1", 0);
  ASSERT_TRUE(Delete("c1/e1"));
  End("c1", 0);
  ASSERT_TRUE(Delete("c1"));
  EXPECT_TRUE(IsIn("backend delete c1", "call Delete c1"));
}

TEST_F(TaskSpans, AreThereForQuestionsOfSuchACaller) {
  Run("c1");
  ASSERT_TRUE(State("c1"));
  Collect();
  EXPECT_TRUE(all_.empty());
  CallWith(kTraced);
  ASSERT_TRUE(State("c1"));
  EXPECT_TRUE(Find("call State c1"));
}

TEST_F(TaskSpans, AreNotThereWhereTheCallerKeepsNone) {
  CallWith(kUnsampled);
  Run("c1");
  ASSERT_TRUE(State("c1"));
  ASSERT_TRUE(Kill("c1"));
  Collect();
  EXPECT_TRUE(all_.empty());
}

TEST_F(TaskSpans, OfBytesThatAreNoTraceAreThoseOfNoCaller) {
  for (const std::string& text : {std::string("x"), std::string(1 << 16, '0'), std::string()}) {
    CallWith(text);
    EXPECT_EQ(CodeOf(State("none")), Code::kNotFound);
  }
  Collect();
  EXPECT_TRUE(all_.empty());
}

TEST_F(TaskSpans, OfAFailedCallSayWhy) {
  backend_.FailNext("create c1", Error{Code::kNotFound, 0, "no such root", {}});
  Announce("c1");
  CallWith(kTraced);
  ASSERT_FALSE(Create("c1"));
  EXPECT_EQ(Find("call Create c1")->end.code, Code::kNotFound);
  EXPECT_THAT(Find("backend create c1")->end.detail, testing::HasSubstr("no such root"));
}

}  // namespace
}  // namespace gantry::task
