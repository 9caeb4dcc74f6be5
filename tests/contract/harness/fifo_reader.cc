// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/fifo_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace gantry::contract {
namespace {

/// For one read, on a machine with much else to do.
constexpr int kLimitMs = 60'000;

}  // namespace

FifoReader::FifoReader(std::string path) : path_(std::move(path)) {
  if (mkfifo(path_.c_str(), 0600) == 0) {
    fd_.reset(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
}

FifoReader::~FifoReader() { unlink(path_.c_str()); }

bool FifoReader::ReadSome() {
  std::array<char, 65536> buffer{};
  // Says nothing before the first writer.
  pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (ended_ || poll(&waiting, 1, kLimitMs) != 1) {
    return false;
  }
  const ssize_t count = read(fd_.get(), buffer.data(), buffer.size());
  ended_ = count <= 0;
  text_.append(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0);
  return !ended_;
}

bool FifoReader::ReadUntil(const std::string& text) {
  while (!text_.contains(text)) {
    if (!ReadSome()) {
      return false;
    }
  }
  return true;
}

bool FifoReader::ReadToEnd() {
  while (ReadSome()) {
  }
  return ended_;
}

}  // namespace gantry::contract
