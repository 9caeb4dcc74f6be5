// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

using AgentStreams = GuestTest;

TEST_F(AgentStreams, ThatNobodyReadsHoldUpNobodyElse) {
  const Made loud = Run({.script = "busybox head -c 8000000 /dev/zero; echo end"});
  const Made other = Run({.script = "echo quick"});
  EXPECT_EQ(ReadStream(other.out), "quick\n");
  EXPECT_EQ(host_->WaitForExit(other.id), 0U);
  EXPECT_FALSE(host_->HasExited(loud.id)) << "its output is held back";
  EXPECT_EQ(ReadStream(loud.out).size(), 8'000'004U);
  EXPECT_EQ(host_->WaitForExit(loud.id), 0U);
}

TEST_F(AgentStreams, EndWithAFrameAndAreClosedByTheHost) {
  const Made made = Run({.script = "echo one"});
  EXPECT_EQ(ReadStream(made.out), "one\n");
  host_->WaitForExit(made.id);
  char byte = 0;
  EXPECT_EQ(::recv(made.out.get(), &byte, 1, MSG_DONTWAIT), -1) << "who has read the end closes";
}

TEST_F(AgentStreams, ThatTheHostClosesEndWhoWritesThem) {
  Made made = Run({.script = "echo line; cat /dev/zero; exit 3"});
  EXPECT_THAT(ReadUntil(made.out, "line"), testing::HasSubstr("line"));
  made.out.reset();
  EXPECT_EQ(host_->WaitForExit(made.id), 3U) << "as a pipe that nobody reads";
}

TEST_F(AgentStreams, WithInputThatNobodyReadsGoOn) {
  const Made made = Run({.script = "exec <&-; echo closed"}, true);
  EXPECT_EQ(ReadUntil(made.out, "closed"), "closed\n");
  WriteStream(made.in, std::string(1000, 'x'));
  EndStream(made.in);
  EXPECT_EQ(ReadStream(made.out), "");
  EXPECT_EQ(host_->WaitForExit(made.id), 0U);
}

TEST_F(AgentStreams, WithAFrameThatIsNoneAreEnded) {
  const Made made = Run({.script = "cat; echo over"}, true);
  const std::string bytes("\x7f\xff\xff\xff", 4);
  ASSERT_EQ(::send(made.in.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 4);
  EXPECT_EQ(ReadStream(made.out), "over\n");
}

}  // namespace
}  // namespace gantry::vmm
