// SPDX-License-Identifier: Apache-2.0
#include "core/task/record_file.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class RecordFileTest : public testing::Test {
 protected:
  /// Of a write that was killed half-way.
  void LeaveUnfinished() {
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/gantry.record.abcdefgh.tmp", "x", 0600));
  }

  std::vector<std::string> Names() const { return *ListDirectory(dir_.path(), 10); }

  store::Record Record() const {
    store::Record record;
    record.ns = *Namespace::Parse("k8s.io");
    record.id = "c1";
    record.bundle = dir_.path();
    return record;
  }

  const os::TempDir dir_ = *os::TempDir::Create();
  RecordFile file_;
};

TEST_F(RecordFileTest, WritesTheNewestStateOnly) {
  store::Record stopped = Record();
  stopped.state = store::State::kStopped;
  const auto older = file_.Writer(file_.Next(Record()));
  const auto newer = file_.Writer(file_.Next(std::move(stopped)));
  EXPECT_TRUE(newer());
  EXPECT_TRUE(older());
  const auto read = store::Read(dir_.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->state, store::State::kStopped);
}

TEST_F(RecordFileTest, OfAnotherEngineLosesItsRestWithTheFirstWrite) {
  LeaveUnfinished();
  file_.SetInherited();
  EXPECT_TRUE(file_.Writer(file_.Next(Record()))());
  EXPECT_THAT(Names(), ElementsAre("gantry.record"));
}

TEST_F(RecordFileTest, OfAnotherEngineLosesItsRestWithItsRemoval) {
  LeaveUnfinished();
  file_.SetInherited();
  EXPECT_TRUE(file_.Remover(dir_.path())());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RecordFileTest, OfItsOwnIsNotSearchedFor) {
  LeaveUnfinished();
  EXPECT_TRUE(file_.Writer(file_.Next(Record()))());
  EXPECT_THAT(Names(), UnorderedElementsAre("gantry.record", "gantry.record.abcdefgh.tmp"));
}

}  // namespace
}  // namespace gantry::task
