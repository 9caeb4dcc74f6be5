// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/trace.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ctl/commands.h"
#include "core/os/fs.h"
#include "core/trace/recorder.h"

namespace gantry::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

trace::Step Of(uint64_t number, std::string id, std::string what) {
  trace::Step step;
  step.number = number;
  step.begun_ns = static_cast<int64_t>(number) * 1'000'000'000;
  step.ns = "k8s.io";
  step.id = std::move(id);
  step.what = std::move(what);
  step.end = trace::End{1'234'567, 0, Code::kOk, ""};
  return step;
}

trace::Step Engine(uint64_t number, std::string what) {
  trace::Step step = Of(number, "", std::move(what));
  step.ns.clear();
  step.kind = trace::Kind::kEngine;
  return step;
}

std::vector<std::string> Whats(const std::vector<trace::Step>& steps) {
  std::vector<std::string> whats;
  for (const trace::Step& step : steps) {
    whats.push_back(step.what);
  }
  return whats;
}

const std::vector<trace::Step>& Life() {
  static const auto* const life = new std::vector<trace::Step>{
      Engine(1, trace::kComeUp), Of(2, "abc", "Create"),  Of(3, "abd", "Create"),
      Engine(4, trace::kComeUp), Of(5, "abc", "recover"), Engine(6, "told to end")};
  return *life;
}

TEST(TraceSelect, GivesAnIdsStepsAndTheEnginesBetweenThem) {
  EXPECT_THAT(Whats(Select(Life(), {"", "abc", 0})),
              ElementsAre("Create", trace::kComeUp, "recover"));
}

TEST(TraceSelect, TakesTheBeginningOfAnIdWhereThereIsNoSuchOne) {
  EXPECT_THAT(Whats(Select(Life(), {"", "abd", 0})), ElementsAre("Create"));
  EXPECT_THAT(Whats(Select(Life(), {"", "ab", 0})),
              ElementsAre("Create", "Create", trace::kComeUp, "recover"));
  EXPECT_THAT(Whats(Select(Life(), {"", "b", 0})), ElementsAre());
}

TEST(TraceSelect, GivesThoseOfANamespaceAndATime) {
  EXPECT_THAT(Whats(Select(Life(), {"default", "", 0})), ElementsAre());
  EXPECT_THAT(Whats(Select(Life(), {"", "", 5'000'000'000})),
              ElementsAre("recover", "told to end"));
}

TEST(TraceTable, ShowsTimesAndResults) {
  std::vector<trace::Step> steps = {Of(1, "c1", "Create"), Of(2, "c1", "Start")};
  steps[0].kind = trace::Kind::kBackend;
  steps[0].end->waited_ns = 500'000;
  steps[1].end = trace::End{20'000'000'000, 0, Code::kNotFound, "no such file"};
  steps[1].exec = "e1";
  steps[1].again = true;

  const std::string table = TraceTable(steps, steps, true);

  EXPECT_THAT(table, HasSubstr("1970-01-01T00:00:01.000Z  1.235ms  0.500ms  backend  Create"));
  EXPECT_THAT(table, HasSubstr("20000ms  -        call     Start (again) e1  "));
  EXPECT_THAT(table, HasSubstr(std::string(CodeName(Code::kNotFound)) + ": no such file\n"));
  EXPECT_THAT(table, Not(HasSubstr("NAMESPACE")));
  EXPECT_THAT(TraceTable(steps, steps, false), AllOf(HasSubstr("NAMESPACE"), HasSubstr("k8s.io")));
}

TEST(TraceTable, TellsWhatIsUnderWayFromWhatItsEngineTookAlong) {
  std::vector<trace::Step> steps = {Of(1, "c1", "Create"), Engine(2, trace::kComeUp),
                                    Of(3, "c1", "Create")};
  steps[0].end.reset();
  steps[2].end.reset();

  EXPECT_THAT(TraceTable({steps[0]}, steps, true), HasSubstr("its engine ended"));
  EXPECT_THAT(TraceTable({steps[2]}, steps, true), HasSubstr("under way"));
}

TEST(TraceTable, LetsNoIdForgeALine) {
  const std::vector<trace::Step> steps = {Of(1, "c1\n\x1b[2J", "Create")};
  EXPECT_THAT(TraceTable(steps, steps, false), HasSubstr("c1??[2J"));
  EXPECT_THAT(TraceJson(steps, steps), Not(HasSubstr("\x1b")));
}

TEST(TraceJson, HasAllThereIs) {
  std::vector<trace::Step> steps = {Of(1, "c1", "Create"), Of(2, "c1", "Start")};
  steps[1].end.reset();
  const std::string json = TraceJson(steps, steps);
  EXPECT_THAT(json, HasSubstr("\"took_ns\": 1234567"));
  EXPECT_THAT(json, HasSubstr("\"detail\": \"under way\""));
}

struct Traced {
  int code;
  std::string out;
  std::string err;
};

class TraceCommand : public testing::Test {
 protected:
  Traced Run(std::vector<std::string> words) const {
    words.insert(words.begin(), "trace");
    words.insert(words.end(), {"--address", dir_.path() + "/gantry.sock"});
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunCommand(words, out, err);
    return {code, out.str(), err.str()};
  }

  void Record() const {
    trace::Recorder recorder;
    ASSERT_TRUE(recorder.Open(dir_.path()));
    recorder.Begin(trace::Kind::kCall, {"default", "c1", ""}, "Create").Ended(Code::kOk);
    recorder.Begin(trace::Kind::kCall, {"default", "c2", ""}, "Start").Ended(Code::kOk);
  }

  const os::TempDir dir_ = std::move(*os::TempDir::Create());
};

TEST_F(TraceCommand, NeedsNoEngine) {
  Record();
  const Traced one = Run({"c1"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("Create"), Not(HasSubstr("Start"))));
  const Traced all = Run({"--all", "--since", "1h"});
  EXPECT_THAT(all.out, AllOf(HasSubstr("c1"), HasSubstr("c2")));
  EXPECT_THAT(Run({"--all", "--json"}).out, HasSubstr("\"id\": \"c2\""));
}

TEST_F(TraceCommand, SaysWhatIsWrong) {
  EXPECT_THAT(Run({"c1"}).err, HasSubstr("trace.ring"));
  Record();
  EXPECT_THAT(Run({}).err, HasSubstr("either an ID or --all"));
  EXPECT_THAT(Run({"c1", "--all"}).err, HasSubstr("either an ID or --all"));
  EXPECT_THAT(Run({"c9"}).err, HasSubstr("no step of that id: the oldest step is of "));
  for (const std::string since : {"soon", "10", "-5s", "99999999999999h"}) {
    EXPECT_THAT(Run({"--all", "--since=" + since}).err, HasSubstr("it is 30s, 10m")) << since;
  }
}

}  // namespace
}  // namespace gantry::ctl
