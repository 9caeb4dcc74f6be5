// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gvisor/fake_sentry.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/json/json_end.h>

namespace gantry::urpc {
namespace {

/// Of each side's own kind: what is tested is not used to test it.
void SendWith(int fd, const std::string& bytes, const std::vector<int>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(128 * sizeof(int))] = {};
  iovec first{const_cast<char*>(bytes.data()), std::min<size_t>(bytes.size(), 1)};
  msghdr message{};
  message.msg_iov = &first;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  if (sendmsg(fd, &message, MSG_NOSIGNAL) == 1) {
    size_t at = 1;
    for (ssize_t sent = 1; at < bytes.size() && sent > 0; at += static_cast<size_t>(sent)) {
      sent = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    }
  }
}

/// As the sentry does: descriptors with the first byte only, and what comes behind the request
/// in the same portion is lost. Empty: the end.
std::string ReceiveRequest(int fd, std::vector<UniqueFd>& fds) {
  std::string text;
  JsonEnd end;
  while (end.state() != JsonEnd::State::kEnded) {
    alignas(cmsghdr) char control[CMSG_SPACE(128 * sizeof(int))] = {};
    std::string part(text.empty() ? 1 : 65536, '\0');
    iovec into{part.data(), part.size()};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    if (text.empty()) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
    }
    const ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (received <= 0) {
      return {};
    }
    if (cmsghdr* const header = CMSG_FIRSTHDR(&message); text.empty() && header != nullptr) {
      for (size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int one = -1;
        std::memcpy(&one, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        fds.emplace_back(one);
      }
    }
    part.resize(static_cast<size_t>(received));
    text += part.substr(0, end.Feed(part));
  }
  return text;
}

}  // namespace

FakeAnswer FakeAnswer::Of(const Json& result) {
  return {Json{{"success", true}, {"err", ""}, {"result", result}}.dump(), {}, false};
}

FakeAnswer FakeAnswer::Refusing(const std::string& err) {
  return {Json{{"success", false}, {"err", err}, {"result", nullptr}}.dump(), {}, false};
}

FakeSentry::FakeSentry(std::string path, Handler answer)
    : path_(std::move(path)),
      answer_(std::move(answer)),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  // By the folder, as a path that is too long for an address is bound.
  const std::filesystem::path whole(path_);
  const UniqueFd folder(open(whole.parent_path().c_str(), O_PATH | O_CLOEXEC));
  const std::string name = Format("/proc/self/fd/{}/{}", folder.get(), whole.filename().string());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(listener_.get(), 512), 0);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeSentry::~FakeSentry() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  CutOff();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  std::filesystem::remove(path_);
}

void FakeSentry::Accept() {
  while (true) {
    UniqueFd one(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!one) {
      return;
    }
    const std::lock_guard lock(mutex_);
    ++accepted_;
    threads_.emplace_back([this, fd = one.get()] { Serve(fd); });
    connections_.push_back(std::move(one));
  }
}

void FakeSentry::CutOff() {
  const std::lock_guard lock(mutex_);
  for (const UniqueFd& one : connections_) {
    shutdown(one.get(), SHUT_RDWR);
  }
}

void FakeSentry::Serve(int fd) {
  while (AnswerNext(fd)) {
  }
  shutdown(fd, SHUT_RDWR);
}

bool FakeSentry::AnswerNext(int fd) {
  std::vector<UniqueFd> fds;
  const std::string text = ReceiveRequest(fd, fds);
  if (text.empty()) {
    return false;
  }
  const FakeAnswer answer = answer_(Json::parse(text), fds);
  SendWith(fd, answer.bytes, answer.fds);
  return !answer.then_close;
}

}  // namespace gantry::urpc
