// SPDX-License-Identifier: Apache-2.0
//
// The alerts and the board of config/: they ask for what there is, and Prometheus' own tool takes
// what they say.
#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/process/ask_program.h>

#include "core/metrics/families.h"
#include "core/metrics/render.h"
#include "tests/unit/metrics/full_moment.h"

namespace gantry::metrics {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;

const std::string kSource = GANTRY_SOURCE_DIR;
const std::string kRules = kSource + "/config/prometheus/gantry.rules.yaml";
const std::string kBoard = kSource + "/config/grafana/gantry.json";

std::string TextOf(const std::string& path) {
  const auto text = ReadFile(path, 1 << 20);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

/// What Prometheus adds to each row itself; and of the rows of a histogram.
const std::set<std::string>& OfPrometheus() {
  static const auto* const labels = new std::set<std::string>{"instance", "job", "le"};
  return *labels;
}

std::set<std::string> LabelsOf(const Family& family) {
  std::set<std::string> labels = OfPrometheus();
  const std::string text(family.labels);
  const std::regex word("[a-z_]+");
  labels.insert(std::sregex_token_iterator(text.begin(), text.end(), word), {});
  return labels;
}

/// Null: there is none that serves such a row.
const Family* FamilyOf(const std::string& row) {
  for (const Family* const family : AllFamilies()) {
    const std::string name(family->name);
    const bool parts = family->kind == Kind::kHistogram &&
                       (row == name + "_bucket" || row == name + "_count" || row == name + "_sum");
    if (parts || (family->kind != Kind::kHistogram && row == name)) {
      return family;
    }
  }
  return nullptr;
}

/// Checks each `gantry_...{label=...}` in `text`; gives how many there are.
size_t CheckSelectors(const std::string& text) {
  const std::regex selector(R"(\b(gantry_[a-z_]+)(\{([^}]*)\})?)");
  const std::regex label(R"(([a-z_]+)(=~|!~|!=|=))");
  size_t count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), selector); at != std::sregex_iterator();
       ++at) {
    ++count;
    const Family* const family = FamilyOf((*at)[1]);
    EXPECT_NE(family, nullptr) << at->str() << " is nothing that is served";
    if (family == nullptr) {
      continue;
    }
    const std::string chosen = (*at)[3];
    for (std::sregex_iterator one(chosen.begin(), chosen.end(), label);
         one != std::sregex_iterator(); ++one) {
      EXPECT_THAT(LabelsOf(*family), Contains((*one)[1].str())) << at->str();
    }
  }
  return count;
}

TEST(AlertRules, AskForWhatIsServed) { EXPECT_GT(CheckSelectors(TextOf(kRules)), 10U); }

class Board : public testing::Test {
 protected:
  Board() : text_(TextOf(kBoard)) {
    const std::regex member(R"raw("(expr|definition)": "((\\.|[^"\\])*)")raw");
    for (std::sregex_iterator at(text_.begin(), text_.end(), member); at != std::sregex_iterator();
         ++at) {
      std::string expression = std::regex_replace((*at)[2].str(), std::regex(R"(\\")"), "\"");
      ((*at)[1] == "expr" ? expressions_ : variables_).push_back(std::move(expression));
    }
  }

  const std::string text_;
  std::vector<std::string> expressions_;
  std::vector<std::string> variables_;
};

TEST_F(Board, IsJsonOfADashboard) {
  const auto json = oci::Json::Parse(text_, "the board");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_THAT(text_, HasSubstr("\"title\": \"gantry\""));
  EXPECT_GT(expressions_.size(), 30U);
  EXPECT_EQ(variables_.size(), 2U);
}

TEST_F(Board, AsksForWhatIsServed) {
  for (const std::string& expression : expressions_) {
    EXPECT_GE(CheckSelectors(expression), 1U) << expression;
  }
  for (const std::string& variable : variables_) {
    const std::regex values(R"(label_values\((gantry_[a-z_]+), ([a-z]+)\))");
    std::smatch match;
    ASSERT_TRUE(std::regex_match(variable, match, values)) << variable;
    const Family* const family = FamilyOf(match[1]);
    ASSERT_NE(family, nullptr) << variable;
    EXPECT_THAT(LabelsOf(*family), Contains(match[2].str()));
  }
}

/// A family that nobody would ever see is in no panel: these are.
TEST_F(Board, ShowsWhatTellsAFault) {
  std::set<std::string> shown;
  for (const std::string& expression : expressions_) {
    const std::regex name("gantry_[a-z_]+");
    shown.insert(std::sregex_token_iterator(expression.begin(), expression.end(), name), {});
  }
  EXPECT_THAT(shown, IsSupersetOf({"gantry_keeper_up", "gantry_engine_hangs_total",
                                   "gantry_engine_gap_seconds_total", "gantry_workers",
                                   "gantry_call_failures_total", "gantry_exits_total",
                                   "gantry_events_queued", "gantry_oom_events_total"}));
}

/// Debian's package `promtool`.
class Promtool : public Board {
 protected:
  void SetUp() override {
    const auto found = FindInPath("/usr/local/bin:/usr/bin", "promtool");
    if (!found) {
      GTEST_SKIP() << "promtool is not installed (./run setup unit)";
    }
    program_ = *found;
  }

  std::string Says(std::vector<std::string> arguments, std::string input = {}) const {
    ProgramQuestion question;
    question.program = program_;
    question.arguments = std::move(arguments);
    question.environment = {"HOME=/"};
    question.input = std::move(input);
    question.with_errors = true;
    question.max_bytes = size_t{1} << 20;
    question.limit = std::chrono::minutes(2);
    auto said = AskProgram(question);
    EXPECT_TRUE(said) << said.error().message;
    return said.value_or("");
  }

  std::string program_;
};

TEST_F(Promtool, TakesTheAlerts) {
  EXPECT_THAT(Says({"check", "rules", kRules}), HasSubstr("SUCCESS: "));
}

TEST_F(Promtool, FindsNothingWrongWithThePage) {
  EXPECT_EQ(Says({"check", "metrics"}, Render(test::FullMoment(), TextFormat::kPrometheus)), "");
}

/// As rules of one file, with a value in the place of each of Grafana's variables.
TEST_F(Promtool, TakesTheBoard) {
  std::string rules = "groups:\n  - name: board\n    rules:\n";
  size_t number = 0;
  for (std::string expression : expressions_) {
    expression = std::regex_replace(expression, std::regex(R"(\$__(rate_)?interval)"), "5m");
    rules += Format("      - record: panel_{}\n        expr: '{}'\n", ++number, expression);
  }
  const std::string file = Format("{}/board.{}.yaml", testing::TempDir(), RandomName(8));
  ASSERT_TRUE(WriteFile(file, rules, 0600));
  EXPECT_THAT(Says({"check", "rules", file}), HasSubstr(Format("SUCCESS: {} rules found", number)));
  EXPECT_TRUE(RemoveFile(file));
}

}  // namespace
}  // namespace gantry::metrics
