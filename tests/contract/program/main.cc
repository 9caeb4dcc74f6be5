// SPDX-License-Identifier: Apache-2.0
//
// gantry-backend-test: every rule of the backend interface, tried on a plugin of
// anybody's, below the keeper and the engine that are installed with it.
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/contract/harness/node.h"
#include "tests/contract/program/arguments.h"
#include "tests/contract/program/demands.h"
#include "tests/contract/program/interrupt.h"
#include "tests/contract/program/table.h"

namespace gantry::contract {
namespace {

std::vector<std::string> Rules() {
  std::vector<std::string> rules;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      rules.push_back(RuleOf(*suite.GetTestInfo(k)));
    }
  }
  return rules;
}

/// False: a rule has no sentence, which is a fault of the suite.
bool List() {
  bool whole = true;
  for (const std::string& rule : Rules()) {
    const std::string demand(DemandOf(rule));
    std::printf("%s\n    %s\n", rule.c_str(), demand.c_str());
    if (demand.empty()) {
      std::fprintf(stderr, "%s has no sentence in tests/contract/program/demands.cc\n",
                   rule.c_str());
      whole = false;
    }
  }
  return whole;
}

/// The first pattern that no rule is called by; empty: each names one.
std::string Unmatched(const std::vector<std::string>& patterns) {
  const std::vector<std::string> rules = Rules();
  for (const std::string& pattern : patterns) {
    if (std::ranges::none_of(rules, [&](const std::string& rule) {
          return fnmatch(pattern.c_str(), rule.c_str(), 0) == 0;
        })) {
      return pattern;
    }
  }
  return "";
}

int Run(int argc, char** argv) {
  constexpr int kNothingTested = 2;
  Result<Arguments> arguments = ReadArguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "gantry-backend-test: %s\n", arguments.error().message.c_str());
    return kNothingTested;
  }
  if (arguments->help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  TheSetup() = std::move(arguments->setup);
  int words = 1;
  testing::InitGoogleMock(&words, argv);
  if (arguments->list) {
    return List() ? 0 : 1;
  }
  if (const std::string pattern = Unmatched(arguments->patterns); !pattern.empty()) {
    std::fprintf(stderr,
                 "gantry-backend-test: --rule '%s': no rule is called that; --list names all, and "
                 "capital letters are others\n",
                 pattern.c_str());
    return kNothingTested;
  }
  if (const std::string missing = Node().unavailable(); !missing.empty()) {
    std::fprintf(stderr, "gantry-backend-test: %s\n", missing.c_str());
    return kNothingTested;
  }
  testing::GTEST_FLAG(filter) = arguments->filter;
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto table = std::make_unique<RuleTable>();
  const RuleTable& verdicts = *table;
  listeners.Append(table.release());  // GoogleTest owns it.
  EndTestsOnSignals();
  const int status = RUN_ALL_TESTS();
  return verdicts.Verdict(status);
}

}  // namespace
}  // namespace gantry::contract

int main(int argc, char** argv) { return gantry::contract::Run(argc, argv); }
