// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/io/client.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace gantry::io {

Reader::Reader(std::string path, size_t limit, bool paused)
    : path_(std::move(path)), stop_(eventfd(0, EFD_CLOEXEC)), paused_(paused) {
  thread_ = std::thread([this, limit] { Run(limit); });
}

Reader::~Reader() {
  stopping_ = true;
  const uint64_t one = 1;
  std::ignore = write(stop_.get(), &one, sizeof(one));
  while (!ended_) {
    // Where it is still in open(2).
    UniqueFd other(open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    std::this_thread::yield();
  }
  thread_.join();
}

void Reader::Run(size_t limit) {
  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::string buffer(32768, '\0');
  size_t total = 0;
  while (fd && !stopping_ && total < limit) {
    if (paused_) {
      std::this_thread::yield();
      continue;
    }
    pollfd wait[2] = {{fd.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(wait, 2, -1);
    if (wait[0].revents == 0) {
      continue;
    }
    const ssize_t got = read(fd.get(), buffer.data(), std::min(buffer.size(), limit - total));
    if (got <= 0) {
      break;
    }
    total += static_cast<size_t>(got);
    const std::lock_guard lock(mutex_);
    text_.append(buffer.data(), static_cast<size_t>(got));
  }
  ended_ = true;
}

bool Reader::AwaitEnd() {
  return Eventually([&] { return ended_.load(); });
}

bool Reader::AwaitText(const std::string& wanted) {
  return Eventually([&] { return text() == wanted; });
}

size_t Reader::size() {
  const std::lock_guard lock(mutex_);
  return text_.size();
}

std::string Reader::text() {
  const std::lock_guard lock(mutex_);
  return text_;
}

Writer::Writer(const std::string& path) {
  Eventually([&] {
    fd_.reset(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return bool(fd_);
  });
}

bool Writer::Write(std::string_view text) {
  return Eventually([&] {
    const ssize_t put = write(fd_.get(), text.data(), text.size());
    text.remove_prefix(put > 0 ? static_cast<size_t>(put) : 0);
    return text.empty();
  });
}

Terminal::Terminal() {
  int master_fd = -1;
  int slave_fd = -1;
  termios raw{};
  cfmakeraw(&raw);
  if (openpty(&master_fd, &slave_fd, nullptr, &raw, nullptr) == 0) {
    fcntl(master_fd, F_SETFD, FD_CLOEXEC);
    fcntl(slave_fd, F_SETFD, FD_CLOEXEC);
  }
  master.reset(master_fd);
  slave.reset(slave_fd);
}

std::string Pattern(size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t state = 88172645463325252ULL;
  for (char& c : text) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return text;
}

std::string IoTest::Fifo(const std::string& name) {
  EXPECT_EQ(mkfifo(Path(name).c_str(), 0700), 0);
  return Path(name);
}

std::string IoTest::File(const std::string& name, const std::string& text, int mode) {
  std::ofstream(Path(name)) << text;
  chmod(Path(name).c_str(), static_cast<mode_t>(mode));
  return Path(name);
}

std::string IoTest::Contents(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(Path(name)).rdbuf();
  return text.str();
}

std::unique_ptr<ProcessIo> IoTest::Open(const StdioPaths& paths) {
  auto io = ProcessIo::Open(*relay_, host_, paths, options_);
  if (!io) {
    throw std::runtime_error(io.error().message);
  }
  return std::move(*io);
}

void IoTest::Restart(std::unique_ptr<ProcessIo>& io, const StdioPaths& paths) {
  io.reset();
  relay_ = std::make_unique<Relay>();
  auto recovered = ProcessIo::Recover(*relay_, host_, paths, options_, host_.Copies());
  if (!recovered) {
    throw std::runtime_error(recovered.error().message);
  }
  io = std::move(*recovered);
}

bool IoTest::Drained(ProcessIo& io) {
  const auto drained = std::make_shared<std::atomic<bool>>(false);
  io.WhenDrained([drained] { *drained = true; });
  return Eventually([&] { return drained->load(); });
}

}  // namespace gantry::io
