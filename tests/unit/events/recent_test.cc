// SPDX-License-Identifier: Apache-2.0
#include "core/events/recent.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::events {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Engines one after the other with one memfd.
class RecentTest : public testing::Test {
 protected:
  void SetUp() override {
    auto memfd = CreateMemfd("recent-test");
    ASSERT_TRUE(memfd) << memfd.error().message;
    memfd_ = std::move(*memfd);
    Open();
  }

  void Open(RecentLimits limits = {}) {
    auto recent = Recent::Open(*memfd_.Duplicate(), limits);
    ASSERT_TRUE(recent) << recent.error().message;
    recent_ = std::move(*recent);
  }

  /// What is read behind `after`; its bodies, then how many are lost where any are.
  std::vector<std::string> Read(uint64_t after, size_t most = 100) {
    const auto page = recent_->Read(after, most);
    EXPECT_TRUE(page);
    std::vector<std::string> all;
    for (const Journal::Record& record : page->records) {
      all.push_back(record.body);
    }
    if (page->lost != 0) {
      all.push_back("lost " + std::to_string(page->lost));
    }
    last_ = page->last;
    return all;
  }

  UniqueFd memfd_;
  std::unique_ptr<Recent> recent_;
  uint64_t last_ = 0;
};

TEST_F(RecentTest, GivesWhatIsBehindAPosition) {
  EXPECT_THAT(Read(0), IsEmpty());
  for (const char* body : {"a", "b", "c"}) {
    ASSERT_TRUE(recent_->Add(body));
  }
  EXPECT_THAT(Read(0), ElementsAre("a", "b", "c"));
  EXPECT_EQ(last_, 3U);
  EXPECT_THAT(Read(0, 2), ElementsAre("a", "b"));
  EXPECT_THAT(Read(last_), ElementsAre("c"));
  EXPECT_THAT(Read(last_), IsEmpty());
  EXPECT_EQ(last_, 3U);
}

TEST_F(RecentTest, TellsASlowReaderHowManyHaveGone) {
  Open({.records = 3});
  for (const char* body : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(recent_->Add(body));
  }
  EXPECT_THAT(Read(1), ElementsAre("c", "d", "e", "lost 1"));
  EXPECT_THAT(Read(0), ElementsAre("c", "d", "e")) << "who begins has lost nothing";
}

TEST_F(RecentTest, TakesNoMoreBytesThanItMay) {
  Open({.records = 1000, .bytes = 1000});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(recent_->Add(std::string(100, 'x')));
  }
  EXPECT_LE(Read(0).size(), 10U);
  EXPECT_FALSE(recent_->Add(std::string(600, 'x')));
  EXPECT_THAT(Read(100), ElementsAre("lost 1")) << "one that is not kept is lost";
}

TEST_F(RecentTest, GoesOnAfterARestart) {
  Open({.records = 2});
  for (const char* body : {"a", "b", "c"}) {
    ASSERT_TRUE(recent_->Add(body));
  }
  ASSERT_TRUE(recent_->SetNote("note"));
  ASSERT_TRUE(recent_->SetNote("another"));
  Open({.records = 2});
  EXPECT_EQ(recent_->note(), "another");
  EXPECT_THAT(Read(2), ElementsAre("c"));
  ASSERT_TRUE(recent_->Add("d"));
  EXPECT_THAT(Read(3), ElementsAre("d"));
  EXPECT_EQ(last_, 4U);
}

TEST_F(RecentTest, TakesAPositionOfAnotherMemfdForTheBeginning) {
  ASSERT_TRUE(recent_->Add("a"));
  EXPECT_THAT(Read(77), ElementsAre("a"));
  EXPECT_EQ(last_, 1U);
}

TEST_F(RecentTest, GivesSpaceBackAndKeepsItsNote) {
  Open({.records = 10});
  ASSERT_TRUE(recent_->SetNote("note"));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(recent_->Add(std::string(1000, 'x') + std::to_string(i)));
  }
  struct stat info = {};
  ASSERT_EQ(fstat(memfd_.get(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
  EXPECT_THAT(Read(4999), ElementsAre(std::string(1000, 'x') + "4999"));
  Open({.records = 10});
  EXPECT_EQ(recent_->note(), "note");
  EXPECT_EQ(Read(0).size(), 10U);
}

}  // namespace
}  // namespace gantry::events
