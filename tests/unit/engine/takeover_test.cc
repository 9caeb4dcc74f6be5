// SPDX-License-Identifier: Apache-2.0
#include "core/engine/takeover.h"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "core/link/messages.h"
#include "core/os/fs.h"
#include "core/store/record.h"

namespace gantry::engine {
namespace {

using testing::HasSubstr;

class TakeoverTest : public testing::Test {
 protected:
  TakeoverTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    engine_.reset(ends[0]);
    keeper_.reset(ends[1]);
  }

  std::string Bundle(const std::string& id) {
    const std::string bundle = dir_.path() + "/" + id;
    std::filesystem::create_directory(bundle);
    return bundle;
  }

  /// With the record of a container that runs with this backend.
  std::string Bundle(const std::string& id, const std::string& backend) {
    store::Record record;
    record.ns = Namespace::Parse("ns").value_or(Namespace());
    record.id = id;
    record.bundle = Bundle(id);
    record.handler = backend;
    record.backend = backend;
    record.state = store::State::kRunning;
    EXPECT_TRUE(store::Write(record));
    return record.bundle;
  }

  static void Write(const std::string& bundle, const std::string& bytes) {
    std::ofstream(store::PathOf(bundle)) << bytes;
  }

  /// The keeper answers with these parts.
  Status Check(const std::vector<std::vector<std::string>>& parts) {
    link::BlockingChannel keeper(std::move(keeper_));
    for (size_t i = 0; i < parts.size(); ++i) {
      const link::Inventory part{parts[i], i + 1 < parts.size()};
      EXPECT_TRUE(keeper.Send(link::Type::kInventory, EncodeProto(part),
                              std::chrono::steady_clock::now() + std::chrono::seconds(10)));
    }
    backend::Backends backends(config_, dir_.path(), dir_.path(), "/none/probe");
    link::BlockingChannel engine(std::move(engine_));
    return CheckTakeover(engine, backends);
  }

  os::TempDir dir_ = os::TempDir::Create().value();
  config::Config config_ = config::Defaults();
  UniqueFd engine_;
  UniqueFd keeper_;
};

TEST_F(TakeoverTest, OfNothingIsPossible) { EXPECT_TRUE(Check({{}})); }

TEST_F(TakeoverTest, NeedsTheBackendsOfWhatRuns) {
  const Status can = Check({{Bundle("c1", "wonder")}});
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(can.error().message, HasSubstr("backend 'wonder', which 'c1' runs with"));
  EXPECT_THAT(can.error().message, HasSubstr("install the plugin"));
}

TEST_F(TakeoverTest, LooksAtEveryPart) {
  EXPECT_FALSE(Check({{Bundle("c1")}, {Bundle("c2")}, {Bundle("c3", "wonder")}}));
}

TEST_F(TakeoverTest, DoesNotTakeUpRecordsOfALaterVersion) {
  const std::string bundle = Bundle("c1");
  Write(bundle, {8, static_cast<char>(store::kSchema + 1)});
  const Status can = Check({{bundle}});
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(can.error().message, HasSubstr(store::PathOf(bundle)));
  EXPECT_THAT(can.error().message, HasSubstr("of a later gantry"));
}

TEST_F(TakeoverTest, IsNotHinderedByWhatNobodyCanRead) {
  const std::string damaged = Bundle("c1");
  Write(damaged, "nonsense");
  EXPECT_TRUE(Check({{damaged, Bundle("c2"), "/none/such"}}));
}

TEST_F(TakeoverTest, NeedsAKeeperThatAnswers) {
  keeper_.reset();
  link::BlockingChannel engine(std::move(engine_));
  backend::Backends backends(config_, dir_.path(), dir_.path(), "/none/probe");
  EXPECT_EQ(CheckTakeover(engine, backends).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gantry::engine
