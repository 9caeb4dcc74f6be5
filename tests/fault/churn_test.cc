// SPDX-License-Identifier: Apache-2.0
//
// Thousands of lives, twenty at a time, while engines are killed: each ends as it was
// planned, and at last nothing of them is there.
//
// The shim is executed, and its services are called, by the test in containerd's place:
// containerd and its client cost ten times what gantry does (measured: 100 ms of a core for
// a life). Their events go to the real containerd.
#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/fault/churn/disturber.h"
#include "tests/fault/churn/holdings.h"
#include "tests/fault/churn/image_mount.h"
#include "tests/fault/churn/life.h"
#include "tests/fault/harness/seed.h"
#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"
#include "tests/harness/host.h"
#include "tests/harness/leftovers.h"

namespace gantry::fault {
namespace {

using ::testing::ElementsAreArray;

constexpr int kAtOnce = 20;
/// Before anything is counted, so that what is made once is there.
constexpr int kFirstLives = 3 * kAtOnce;
/// A reconnect may be under way.
constexpr int kDescriptorSlack = 3;
/// The heap of a keeper that has had twenty at a time is not always the same, whether it had
/// 300 lives or 5,000 (seen: 45 to 105 KiB more). 40 bytes for each of 5,000 would show.
constexpr int64_t kMostHeapGrowthKib = 192;
/// The journal of events is made small again when it holds 256 KiB that nobody needs.
constexpr int64_t kMostFilesKib = 512;

int Lives() {
  const char* const given = std::getenv("GANTRY_CHURN_LIVES");
  return given != nullptr ? std::max(1, std::atoi(given)) : 1000;
}

class Churn : public e2e::E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    image_ = std::make_unique<ImageMount>(node());
    known_ = e2e::WhatIsThere(node(), Id("-"));
  }

  void TearDown() override {
    image_.reset();
    E2eTest::TearDown();
  }

  ChurnLife LifeOf(int number) {
    return ChooseLife(Seed(), number, Id("-" + std::to_string(number)));
  }

  /// Lives the lives of these numbers, some at a time.
  void LiveAll(int begin, int end, const std::function<void()>& step) {
    std::atomic<int> next = begin;
    std::vector<std::jthread> clients;
    for (int i = 0; i < kAtOnce; ++i) {
      clients.emplace_back([&] {
        for (int number = next++; number < end && !HasFailure(); number = next++) {
          Live(node(), image_->path(), LifeOf(number), step);
        }
      });
    }
  }

  void ExpectNothingLeft() {
    EXPECT_EQ(e2e::Leftovers(node(), {}, Id("-"), known_), "");
    EXPECT_THAT(e2e::MountsBelow(settings().root + "/raw"), testing::IsEmpty());
    EXPECT_THAT(e2e::ListFolder(settings().root + "/raw"), testing::IsEmpty());
  }

  static void ExpectNoGrowth(const Holdings& before, const Holdings& after) {
    EXPECT_LE(after.keeper_descriptors, before.keeper_descriptors + kDescriptorSlack);
    EXPECT_LE(after.engine_descriptors, before.engine_descriptors + kDescriptorSlack);
    EXPECT_LE(after.keeper_kib, before.keeper_kib + kMostHeapGrowthKib);
    EXPECT_LE(after.keeper_files_kib, kMostFilesKib);
  }

  /// In containerd's log of events, each life's own come once and in order.
  void ExpectEvents(e2e::Events& events, int end) {
    std::map<std::string, std::vector<e2e::Event>> of_lives;
    for (int number = 0; number < end && !HasFailure(); ++number) {
      const ChurnLife chosen = LifeOf(number);
      if (chosen.kind != ChurnKind::kAbandoned) {
        EXPECT_TRUE(events.Heard("/tasks/delete", chosen.id)) << chosen.id << " was never deleted";
      }
    }
    for (e2e::Event& event : events.All()) {
      of_lives[event.Field("container_id")].push_back(std::move(event));
    }
    for (int number = 0; number < end && !HasFailure(); ++number) {
      const ChurnLife chosen = LifeOf(number);
      auto topics = e2e::Events::TopicsOnce(of_lives[chosen.id]);
      const auto wanted = TopicsOf(chosen);
      if (chosen.kind == ChurnKind::kAbandoned && topics.size() > wanted.size()) {
        // An end that nobody asked for may be told or not.
        topics.resize(wanted.size());
      }
      EXPECT_THAT(topics, ElementsAreArray(wanted)) << chosen.id;
    }
  }

  std::unique_ptr<ImageMount> image_;
  /// Of the image that is mounted.
  std::set<std::string> known_;
};

TEST_F(Churn, EndsAsPlannedAndLeavesNothing) {
  const int lives = Lives();
  e2e::Events events(node());
  LiveAll(0, kFirstLives, [] {});
  ExpectNothingLeft();
  const pid_t keeper = node().Keeper().pid;
  const Holdings before = ReadHoldings(node());
  std::cout << "before: " << before.Text() << std::endl;
  const auto begin = e2e::Clock::now();
  Disturber disturber(node(), Seed());
  LiveAll(kFirstLives, kFirstLives + lives, [&] { disturber.Step(); });
  disturber.Stop();
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(e2e::Clock::now() - begin);
  std::cout << lives << " lives in " << took.count() << " s: " << disturber.kills()
            << " times the engine was killed, " << disturber.upgrades() << " times upgraded, "
            << disturber.keeper_upgrades() << " times the keeper" << std::endl;
  EXPECT_GT(disturber.kills(), 0);
  EXPECT_EQ(node().Keeper().pid, keeper);
  ExpectNothingLeft();
  const Holdings after = ReadHoldings(node());
  std::cout << "after:  " << after.Text() << std::endl;
  ExpectNoGrowth(before, after);
  ExpectEvents(events, kFirstLives + lives);
}

}  // namespace
}  // namespace gantry::fault
