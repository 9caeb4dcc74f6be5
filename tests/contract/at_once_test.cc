// SPDX-License-Identifier: Apache-2.0
//
// Calls about one container that come at once, again and again.
#include <signal.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/harness/contract_test.h"

namespace gantry::contract {
namespace {

class AtOnce : public ContractTest {};

constexpr int kCallers = 6;
constexpr int kExecsOfEach = 50;

bool RunsTrue(const Box& box, const std::string& exec) {
  const Status made = box.Exec(exec, {"true"});
  EXPECT_OK(made);
  const auto started = made ? box.Start(exec) : Result<pb::StartResponse>(pb::StartResponse());
  EXPECT_OK(started);
  if (!made || !started) {
    return false;
  }
  EXPECT_EQ(Got(box.Wait(exec)).exit_status(), 0U);
  const auto deleted = box.Delete(exec);
  EXPECT_OK(deleted);
  return deleted.has_value();
}

/// A sentry that starts a process while it delivers a signal to all ends.
TEST_P(AtOnce, ExecsAndSignalsToAll) {
  const Box& box = Running();
  std::atomic<int> callers = kCallers;
  std::vector<std::jthread> threads;
  for (int caller = 0; caller < kCallers; ++caller) {
    threads.emplace_back([&box, &callers, caller] {
      for (int i = 0; i < kExecsOfEach; ++i) {
        if (!RunsTrue(box, "x" + std::to_string(caller) + "-" + std::to_string(i))) {
          break;
        }
      }
      --callers;
    });
  }
  while (callers > 0) {
    EXPECT_OK(box.Kill(SIGCONT, "", true));
  }
  threads.clear();
  EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
}

INSTANTIATE_CONTRACT(AtOnce);

}  // namespace
}  // namespace gantry::contract
