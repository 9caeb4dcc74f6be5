// SPDX-License-Identifier: Apache-2.0
#include "core/events/journal.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::events {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Contents = std::vector<std::pair<uint64_t, std::string>>;

/// Opens journals one after the other on one memfd, as engines do.
class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    auto memfd = CreateMemfd("journal-test");
    ASSERT_TRUE(memfd) << memfd.error().message;
    memfd_ = std::move(*memfd);
  }

  Contents Open() {
    records_.clear();
    auto journal = Journal::Open(*memfd_.Duplicate(), &records_);
    if (!journal) {
      ADD_FAILURE() << journal.error().message;
      return {};
    }
    journal_.emplace(std::move(*journal));
    Contents contents;
    for (const Journal::Record& record : records_) {
      contents.emplace_back(record.seq, record.body);
    }
    return contents;
  }

  uint64_t MemoryBytes() {
    struct stat info = {};
    EXPECT_EQ(fstat(memfd_.get(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  UniqueFd memfd_;
  std::vector<Journal::Record> records_;
  std::optional<Journal> journal_;
};

TEST_F(JournalTest, KeepsWhatIsNotErased) {
  EXPECT_THAT(Open(), IsEmpty());
  const auto first = journal_->Append(1, "first");
  ASSERT_TRUE(journal_->Append(2, "second"));
  ASSERT_TRUE(journal_->Append(7, ""));
  ASSERT_TRUE(journal_->Erase(*first));
  EXPECT_THAT(Open(), ElementsAre(Pair(2, "second"), Pair(7, "")));
  ASSERT_TRUE(journal_->Erase(records_[1].position));
  ASSERT_TRUE(journal_->Append(8, "eight"));
  EXPECT_THAT(Open(), ElementsAre(Pair(2, "second"), Pair(8, "eight")));
}

TEST_F(JournalTest, IgnoresAHalfWrittenRecordAtTheEnd) {
  Open();
  ASSERT_TRUE(journal_->Append(1, "first"));
  const uint64_t whole = journal_->end();
  ASSERT_TRUE(journal_->Append(2, "second"));
  const uint64_t size = journal_->end();
  const std::string bytes = *ReadAt(memfd_.get(), 0, size);
  for (uint64_t cut = whole; cut < size; ++cut) {
    ASSERT_TRUE(Truncate(memfd_.get(), 0));
    ASSERT_TRUE(WriteAt(memfd_.get(), 0, std::string_view(bytes).substr(0, cut)));
    EXPECT_THAT(Open(), ElementsAre(Pair(1, "first"))) << cut;
    ASSERT_TRUE(journal_->Append(3, "third"));
    EXPECT_THAT(Open(), ElementsAre(Pair(1, "first"), Pair(3, "third"))) << cut;
  }
}

TEST_F(JournalTest, EndsAtADamagedRecord) {
  Open();
  ASSERT_TRUE(journal_->Append(1, "first"));
  const auto second = journal_->Append(2, "second");
  ASSERT_TRUE(journal_->Append(3, "third"));
  ASSERT_TRUE(WriteAt(memfd_.get(), second->offset + second->bytes - 1, "X"));
  EXPECT_THAT(Open(), ElementsAre(Pair(1, "first")));
}

TEST_F(JournalTest, BeginsAnewWhereThereIsNoJournal) {
  ASSERT_TRUE(WriteAt(memfd_.get(), 0, "this is something else altogether"));
  EXPECT_THAT(Open(), IsEmpty());
  ASSERT_TRUE(journal_->Append(1, "first"));
  EXPECT_THAT(Open(), ElementsAre(Pair(1, "first")));
  // Died between cutting the file and writing its header.
  ASSERT_TRUE(Truncate(memfd_.get(), 7));
  EXPECT_THAT(Open(), IsEmpty());
}

TEST_F(JournalTest, ACompactionCutShortDoublesNothing) {
  Open();
  const auto first = journal_->Append(1, "first");
  std::vector<Journal::Live> live = {{*journal_->Append(2, "second"), {}},
                                     {*journal_->Append(3, "third"), {}}};
  ASSERT_TRUE(journal_->Erase(*first));
  const std::string header = *ReadAt(memfd_.get(), 0, 16);
  ASSERT_TRUE(journal_->Compact(live));
  EXPECT_THAT(Open(), ElementsAre(Pair(2, "second"), Pair(3, "third")));
  EXPECT_EQ(records_[0].position.offset, live[0].to.offset);

  // As if it had died before it moved the beginning.
  ASSERT_TRUE(WriteAt(memfd_.get(), 0, header));
  EXPECT_THAT(Open(), ElementsAre(Pair(2, "second"), Pair(3, "third")));
  ASSERT_TRUE(journal_->Erase(records_[0].position));
  EXPECT_THAT(Open(), ElementsAre(Pair(3, "third")));
}

TEST_F(JournalTest, GivesItsMemoryBack) {
  Open();
  const std::string body(1000, 'x');
  Journal::Position kept = *journal_->Append(1, body);
  for (uint64_t seq = 2; seq < 20000; ++seq) {
    ASSERT_TRUE(journal_->Erase(*journal_->Append(seq, body)));
    if (journal_->WorthCompacting()) {
      std::vector<Journal::Live> live = {{kept, {}}};
      ASSERT_TRUE(journal_->Compact(live));
      kept = live[0].to;
    }
  }
  EXPECT_LT(MemoryBytes(), uint64_t{1} << 20);
  EXPECT_THAT(Open(), ElementsAre(Pair(1, body)));
  // With nothing live the file itself is cut.
  ASSERT_TRUE(journal_->Erase(records_[0].position));
  EXPECT_LT(*FileSize(memfd_.get()), 4096U);
  EXPECT_THAT(Open(), IsEmpty());
}

}  // namespace
}  // namespace gantry::events
