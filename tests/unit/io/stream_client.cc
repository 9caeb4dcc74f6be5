// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/io/stream_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include <gantry/protowire.h>

#include "tests/unit/io/fakes.h"

namespace gantry::io {
namespace {

constexpr size_t kHeader = 10;
constexpr uint64_t kWindow = 65536;

uint32_t Number(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return value;
}

void ReadMessage(std::string_view payload, StreamFrames& frames) {
  std::string type;
  std::string_view value;
  ProtoReader any(payload);
  while (any.Next()) {
    (any.field() == 1 ? void(type = any.text()) : void(value = any.bytes()));
  }
  EXPECT_TRUE(any.ok());
  ProtoReader message(value);
  const bool some = message.Next();
  if (type == "containerd.types.transfer.Data") {
    const std::string_view data = some ? message.bytes() : std::string_view();
    frames.data += data;
    frames.longest_data = std::max(frames.longest_data, data.size());
  } else {
    EXPECT_EQ(type, "containerd.types.transfer.WindowUpdate");
    frames.windows.push_back(static_cast<uint32_t>(message.number()));
  }
}

/// Takes whole frames off.
void TakeFrames(std::string& bytes, StreamFrames& frames) {
  size_t at = 0;
  while (bytes.size() - at >= kHeader) {
    const std::string_view frame = std::string_view(bytes).substr(at);
    const size_t length = Number(frame);
    if (frame.size() < kHeader + length) {
      break;
    }
    EXPECT_EQ(Number(frame.substr(4)), 1U) << "of another stream";
    EXPECT_EQ(frame[8], 3) << "no data frame";
    frames.ends_last = frames.ends_last && frames.ends == 0;
    if (frame[9] == 5) {
      EXPECT_EQ(length, 0U);
      ++frames.ends;
    } else {
      EXPECT_EQ(frame[9], 0);
      ReadMessage(frame.substr(kHeader, length), frames);
    }
    at += kHeader + length;
  }
  bytes.erase(0, at);
  frames.rest = bytes.size();
}

}  // namespace

StreamFrames ParseStream(std::string_view bytes) {
  StreamFrames frames;
  std::string rest(bytes);
  TakeFrames(rest, frames);
  return frames;
}

std::string DataFrame(std::string_view data) {
  ProtoWriter message;
  message.Bytes(1, data);
  ProtoWriter any;
  any.Bytes(1, "containerd.types.transfer.Data");
  any.Bytes(2, message.str());
  std::string frame;
  for (const uint32_t word : {static_cast<uint32_t>(any.str().size()), 1U}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame += static_cast<char>(word >> shift);
    }
  }
  frame += '\3';
  frame += '\0';
  return frame + any.str();
}

StreamClient::StreamClient(uint64_t number, bool allows) : number_(number), allows_(allows) {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  theirs_.reset(fds[0]);
  ours_.reset(fds[1]);
  if (allows_) {
    EXPECT_TRUE(Allow(kWindow));
  }
  thread_ = std::thread([this] { Run(); });
}

StreamClient::~StreamClient() {
  Kill();
  thread_.join();
}

StreamConnection StreamClient::Take() { return {number_, 1, std::move(theirs_)}; }

bool StreamClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(ours_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool StreamClient::Write(std::string_view data) {
  while (!data.empty()) {
    size_t now = 0;
    const bool may = Eventually([&] {
      const std::lock_guard lock(mutex_);
      uint64_t granted = 0;
      for (const uint32_t window : frames_.windows) {
        granted += window;
      }
      now = std::min<size_t>({data.size(), granted - written_, 32768});
      written_ += now;
      return now > 0 || closed_;
    });
    if (!may || now == 0 || !Send(DataFrame(data.substr(0, now)))) {
      return false;
    }
    data.remove_prefix(now);
  }
  return true;
}

bool StreamClient::Allow(uint32_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    allowed_ += bytes;
  }
  return Send(StreamWindowFrame(1, bytes));
}

void StreamClient::End() {
  EXPECT_TRUE(Send(StreamEndFrame(1)));
  shutdown(ours_.get(), SHUT_WR);
}

void StreamClient::Kill() { shutdown(ours_.get(), SHUT_RDWR); }

void StreamClient::Run() {
  char buffer[8192];
  for (ssize_t got = 0; (got = read(ours_.get(), buffer, sizeof(buffer))) > 0;) {
    {
      const std::lock_guard lock(mutex_);
      bytes_.append(buffer, static_cast<size_t>(got));
    }
    OnBytes();
  }
  closed_ = true;
}

void StreamClient::OnBytes() {
  bool more = false;
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    const int ends = frames_.ends;
    TakeFrames(bytes_, frames_);
    kept_ = kept_ && frames_.data.size() <= allowed_;
    more = allows_ && allowed_ - std::min<uint64_t>(frames_.data.size(), allowed_) < kWindow;
    ended = allows_ && frames_.ends > ends;
  }
  if (ended) {
    IgnoreError(Result<bool>(Send(StreamEndFrame(1))), "it may be closed");
  } else if (more) {
    IgnoreError(Result<bool>(Allow(kWindow)), "it may be closed");
  }
}

bool StreamClient::AwaitData(const std::string& text) {
  return Eventually([&] { return data() == text; });
}

bool StreamClient::AwaitBytes(size_t bytes) {
  return Eventually([&] { return data().size() >= bytes; });
}

bool StreamClient::AwaitEnd() {
  return Eventually([&] { return frames().ends > 0; });
}

bool StreamClient::AwaitClosed() {
  return Eventually([&] { return closed_.load(); });
}

bool StreamClient::AwaitWindow(uint64_t bytes) {
  return Eventually([&] {
    uint64_t all = 0;
    for (const uint32_t window : frames().windows) {
      all += window;
    }
    return all == bytes;
  });
}

std::string StreamClient::data() {
  const std::lock_guard lock(mutex_);
  return frames_.data;
}

StreamFrames StreamClient::frames() {
  const std::lock_guard lock(mutex_);
  return frames_;
}

bool StreamClient::kept_to_the_window() {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace gantry::io
