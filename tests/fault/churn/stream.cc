// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/churn/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

namespace gantry::fault {
namespace {

UniqueFd MakeFifo(const std::string& path, int flags) {
  EXPECT_EQ(mkfifo(path.c_str(), 0600), 0) << path;
  UniqueFd fd(open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(fd) << path;
  return fd;
}

}  // namespace

StreamReader::StreamReader(std::string path)
    : path_(std::move(path)), fd_(MakeFifo(path_, O_RDONLY)) {}

std::string StreamReader::ReadToEnd(e2e::Duration deadline) {
  const auto until = e2e::Clock::now() + deadline;
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<e2e::Duration>(until - e2e::Clock::now());
    // A fifo that nobody has opened for writing yet is not at its end for poll(2).
    pollfd polled{fd_.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&polled, 1, static_cast<int>(left.count())) <= 0) {
      ADD_FAILURE() << path_ << " does not end";
      return text;
    }
    const ssize_t got = read(fd_.get(), buffer.data(), buffer.size());
    if (got == 0) {
      return text;
    }
    if (got > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
  }
}

// Open for reading, too, so that what is written stays while there is no reader yet.
StreamWriter::StreamWriter(std::string path)
    : path_(std::move(path)), fd_(MakeFifo(path_, O_RDWR)) {}

void StreamWriter::Write(const std::string& text) const {
  EXPECT_EQ(write(fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

}  // namespace gantry::fault
