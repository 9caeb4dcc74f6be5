// SPDX-License-Identifier: Apache-2.0
//
// Many containers at once. GANTRY_E2E_SCALE says how many.

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

constexpr size_t kAtOnce = 8;

size_t Scale() {
  const char* value = std::getenv("GANTRY_E2E_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? std::strtoul(value, nullptr, 10) : 600;
}

class CtrScale : public E2eTest {
 protected:
  void StartAll() {
    std::deque<Program> starting;
    for (size_t i = 0; i < Scale(); ++i) {
      ids_.push_back(Id("-" + std::to_string(i)));
      starting.push_back(
          StartCtr(node(), RunWords({"-d", "--null-io"}, ids_.back(), {"sleep", "10000"}), {}));
      if (starting.size() == kAtOnce) {
        ASSERT_EQ(starting.front().Wait(kLong), 0) << starting.front().err();
        starting.pop_front();
      }
    }
    for (Program& program : starting) {
      ASSERT_EQ(program.Wait(kLong), 0) << program.err();
    }
  }

  void RemoveAll() {
    constexpr size_t kInOneCall = 50;
    for (size_t i = 0; i < ids_.size(); i += kInOneCall) {
      const auto begin = ids_.begin() + static_cast<ptrdiff_t>(i);
      const auto end = ids_.begin() + static_cast<ptrdiff_t>(std::min(i + kInOneCall, ids_.size()));
      Words tasks{"tasks", "rm", "-f"};
      tasks.insert(tasks.end(), begin, end);
      const Output killed = node().Ctr(tasks, {}, kLong);
      EXPECT_NE(killed.status, Output::kTimedOut) << killed.Text();
      Words containers{"containers", "rm"};
      containers.insert(containers.end(), begin, end);
      EXPECT_EQ(node().Ctr(containers, {}, kLong).status, 0);
    }
  }

  std::vector<std::string> ids_;
};

TEST_F(CtrScale, ServesTheFirstAndTheLastOfMany) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(Ctr({"tasks", "ls", "-q"}).out, '\n')),
            ids_.size());
  EXPECT_EQ(Exec(ids_.front(), {"echo", "first"}).out, "first\n");
  EXPECT_EQ(Exec(ids_.back(), {"echo", "last"}).out, "last\n");
  RemoveAll();
  EXPECT_EQ(Ctr({"tasks", "ls", "-q"}).out, "");
  const Output after = RunContainer({"--rm"}, Id("after"), {"echo", "after"});
  EXPECT_EQ(after.out, "after\n") << after.Text();
}

}  // namespace
}  // namespace gantry::e2e
