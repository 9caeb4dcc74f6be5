// SPDX-License-Identifier: Apache-2.0
#include "core/os/terminal.h"

#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/unique_fd.h>

namespace gantry::os {
namespace {

/// Without `SettleInput` about half of these words are lost, on Linux 6.18.
constexpr int kRounds = 200;

std::pair<UniqueFd, UniqueFd> OpenTerminal() {
  int master = -1;
  int slave = -1;
  EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  return {UniqueFd(master), UniqueFd(slave)};
}

/// Fewer where no more come within 10 s.
std::string ReadBytes(int fd, size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    pollfd readable{fd, POLLIN, 0};
    std::array<char, 64> part{};
    const ssize_t got =
        poll(&readable, 1, 10'000) == 1 ? read(fd, part.data(), bytes - text.size()) : 0;
    if (got <= 0) {
      break;
    }
    text.append(part.data(), static_cast<size_t>(got));
  }
  return text;
}

TEST(SettleInput, KeepsWhatIsSaidAfterIt) {
  for (int round = 0; round < kRounds; ++round) {
    const auto [master, slave] = OpenTerminal();
    ASSERT_EQ(write(master.get(), "\x03", 1), 1);
    ASSERT_TRUE(SettleInput(master.get()));
    ASSERT_EQ(write(slave.get(), "word\n", 5), 5);
    ASSERT_EQ(ReadBytes(master.get(), 8), "^Cword\r\n") << "round " << round;
  }
}

TEST(SettleInput, ReturnsWhereInputIsLeftUnread) {
  const auto [master, slave] = OpenTerminal();
  ASSERT_EQ(write(master.get(), "line\n", 5), 5);
  EXPECT_TRUE(SettleInput(master.get()));
  EXPECT_TRUE(SettleInput(master.get()));
}

TEST(SettleInput, LeavesTheOtherSideAsItWas) {
  auto [master, slave] = OpenTerminal();
  slave.reset();
  EXPECT_TRUE(SettleInput(master.get()));
  char none;
  EXPECT_EQ(read(master.get(), &none, 1), -1);
  EXPECT_EQ(errno, EIO) << "its programs have ended";
}

TEST(SettleInput, NeedsATerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  EXPECT_FALSE(SettleInput(out.get()));
}

}  // namespace
}  // namespace gantry::os
