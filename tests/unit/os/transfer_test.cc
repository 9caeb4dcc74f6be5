// SPDX-License-Identifier: Apache-2.0
//
// One transfer between two descriptors.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/splice.h"

namespace gantry::os {
namespace {

class SpliceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made_from = MakePipe();
    auto made_to = MakePipe();
    ASSERT_TRUE(made_from && made_to);
    from_ = std::move(*made_from);
    to_ = std::move(*made_to);
  }

  std::pair<UniqueFd, UniqueFd> from_;
  std::pair<UniqueFd, UniqueFd> to_;
};

TEST_F(SpliceTest, MovesBytesAndTellsEmptyFromEnd) {
  const int in = from_.first.get();
  const int out = to_.second.get();
  EXPECT_TRUE(Splice(in, out, 100)->would_block);
  EXPECT_EQ(WriteSome(from_.second.get(), std::string_view("hello"))->bytes, 5U);
  EXPECT_EQ(Splice(in, out, 100)->bytes, 5U);
  EXPECT_EQ(BytesQueued(to_.first.get()).value(), 5U);
  from_.second.reset();
  EXPECT_TRUE(Splice(in, out, 100)->end);
}

TEST_F(SpliceTest, TeeLeavesTheSourceAsItWas) {
  EXPECT_EQ(WriteSome(from_.second.get(), std::string_view("hello"))->bytes, 5U);
  EXPECT_EQ(Tee(from_.first.get(), to_.second.get(), 100)->bytes, 5U);
  EXPECT_EQ(BytesQueued(from_.first.get()).value(), 5U);
  std::array<char, 16> buffer{};
  EXPECT_EQ(ReadSome(to_.first.get(), buffer)->bytes, 5U);
  EXPECT_TRUE(ReadSome(to_.first.get(), buffer)->would_block);
}

TEST_F(SpliceTest, SaysWhenTheKernelCannot) {
  auto sockets = UnixSocketPair();
  auto others = UnixSocketPair();
  EXPECT_EQ(Splice(sockets->first.get(), others->first.get(), 10).error().code,
            Code::kInvalidArgument);
}

TEST_F(SpliceTest, WidensAPipe) {
  const auto size = SetPipeSize(from_.first.get(), 256 * 1024);
  ASSERT_TRUE(size);
  EXPECT_GE(*size, 4096U);
  EXPECT_FALSE(SetPipeSize(UnixSocketPair()->first.get(), 4096));
}

TEST_F(SpliceTest, TreatsATerminalsHangUpAsItsEnd) {
  UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master || grantpt(master.get()) < 0 || unlockpt(master.get()) < 0) {
    GTEST_SKIP() << "no terminals here";
  }
  std::array<char, 64> name{};
  ASSERT_EQ(ptsname_r(master.get(), name.data(), name.size()), 0);
  {
    const UniqueFd slave(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  std::array<char, 16> buffer{};
  EXPECT_TRUE(ReadSome(master.get(), buffer)->end);
}

}  // namespace
}  // namespace gantry::os
