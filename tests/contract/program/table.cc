// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/program/table.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/setup.h"
#include "tests/contract/program/demands.h"
#include "tests/contract/program/failure.h"

namespace gantry::contract {
namespace {

constexpr size_t kLongestReason = 100;
constexpr size_t kLongestFailure = 600;

std::string Clipped(std::string text, size_t most) {
  if (!TheSetup().verbose && text.size() > most) {
    text.resize(most);
    text += "...";
  }
  return text;
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return Clipped(std::move(text), kLongestReason);
}

std::string Indented(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) {
    out += c;
    if (c == '\n') {
      out += "    ";
    }
  }
  return out;
}

}  // namespace

std::string RuleOf(const testing::TestInfo& test) {
  const std::string_view suite = test.test_suite_name();
  const std::string_view name = test.name();
  return std::string(suite.substr(suite.find('/') + 1)) + "." +
         std::string(name.substr(0, name.rfind('/')));
}

void RuleTable::OnTestProgramStart(const testing::UnitTest& all) {
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      width_ = std::max(width_, RuleOf(*suite.GetTestInfo(k)).size());
    }
  }
}

void RuleTable::OnEnvironmentsSetUpEnd(const testing::UnitTest&) {
  stopped_ = std::exchange(failures_, {});
}

void RuleTable::OnTestPartResult(const testing::TestPartResult& result) {
  if (result.skipped()) {
    skipped_ = result.message();
  } else if (result.failed()) {
    std::string why = Clipped(ReadableFailure(result.message()), kLongestFailure);
    for (const std::string& call : NotedCalls()) {
      why += "\nafter: " + call;
    }
    failures_.push_back(std::move(why));
    ForgetCalls();  // Of which the next failure need not tell again.
  }
}

void RuleTable::OnTestEnd(const testing::TestInfo& test) {
  if (!stopped_.empty()) {
    return;  // GoogleTest calls it skipped.
  }
  const Observed& seen = TheObserved();
  std::string verdict = "met";
  if (test.result()->Failed() && !seen.not_supported.empty() && !seen.left) {
    verdict = "not supported (" + OneLine(seen.not_supported) + ")";
    ++not_supported_;
  } else if (test.result()->Failed()) {
    verdict = "not met";
    not_met_.push_back({RuleOf(test), std::exchange(failures_, {})});
  } else if (test.result()->Skipped()) {
    constexpr std::string_view kWords = "not supported: ";
    const size_t said = skipped_.starts_with(kWords) ? kWords.size() : 0;
    verdict = "not supported (" + OneLine(skipped_.substr(said)) + ")";
    ++not_supported_;
  } else {
    ++met_;
  }
  std::printf("%-*s  %s\n", static_cast<int>(width_), RuleOf(test).c_str(), verdict.c_str());
  std::fflush(stdout);
  failures_.clear();
}

void RuleTable::OnTestProgramEnd(const testing::UnitTest&) {
  for (const std::string& why : stopped_) {
    std::printf("No rule was tried:\n%s\n", Indented(why).c_str());
  }
  for (const NotMet& rule : not_met_) {
    std::printf("\n%s is not met:\n    demand: %s\n", rule.rule.c_str(),
                std::string(DemandOf(rule.rule)).c_str());
    for (const std::string& why : rule.why) {
      std::printf("%s\n", Indented(why).c_str());
    }
  }
  std::string left_out;
  for (const std::string& call : CallsLeftOut()) {
    left_out += (left_out.empty() ? "" : ", ") + call;
  }
  if (!left_out.empty()) {
    std::printf("\nThe backend leaves out %s: steps with that were skipped\n", left_out.c_str());
  }
  std::printf("\n%d met, %zu not met, %d not supported\n", met_, not_met_.size(), not_supported_);
}

int RuleTable::Verdict(int status) const {
  // GoogleTest also fails for what belongs to no test.
  if (!not_met_.empty() || !stopped_.empty() || (status != 0 && not_supported_ == 0)) {
    return 1;
  }
  return met_ > 0 ? 0 : 2;
}

}  // namespace gantry::contract
