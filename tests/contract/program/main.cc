// SPDX-License-Identifier: Apache-2.0
//
// gantry-backend-test: every rule of the backend interface, tried on a plugin of
// anybody's, below the keeper and the engine that are installed with it.
#include <cstdio>
#include <memory>

#include <gmock/gmock.h>

#include "tests/contract/harness/node.h"
#include "tests/contract/program/arguments.h"
#include "tests/contract/program/interrupt.h"
#include "tests/contract/program/table.h"

namespace gantry::contract {
namespace {

void List() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      std::printf("%s\n", RuleOf(*suite.GetTestInfo(k)).c_str());
    }
  }
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
    List();
    return 0;
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
