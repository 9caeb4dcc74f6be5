// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/format.h>

namespace gantry::metrics {
namespace {

constexpr size_t kReadBytes = 2048;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

std::string HeadOf(const Request& request, size_t body_bytes) {
  const bool good = request.status == 200;
  return Format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n",
                request.status, ReasonOf(request.status),
                good ? ContentTypeOf(request.format) : "text/plain; charset=utf-8", body_bytes,
                request.status == 405 ? "Allow: GET, HEAD\r\n" : "",
                request.keep_alive ? "" : "Connection: close\r\n");
}

}  // namespace

Connection::Connection(async::Loop& loop, UniqueFd socket, Pages& pages,
                       const ConnectionLimits& limits,
                       std::function<void(const Connection&)> closed)
    : loop_(loop),
      socket_(std::move(socket)),
      pages_(pages),
      limits_(limits),
      closed_(std::move(closed)) {}

Connection::~Connection() { Close(); }

void Connection::Begin() {
  watch_ = loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) {
    const std::shared_ptr<Connection> self = shared_from_this();
    OnReady();
  });
  Enter(Stage::kIdle, limits_.idle);
}

void Connection::Close() {
  if (std::exchange(stage_, Stage::kClosed) == Stage::kClosed) {
    return;
  }
  loop_.Unwatch(watch_);
  loop_.Cancel(timer_);
  page_.reset();
  socket_.reset();
}

void Connection::End() {
  if (stage_ != Stage::kClosed) {
    Close();
    closed_(*this);
  }
}

void Connection::Enter(Stage stage, async::Duration limit) {
  stage_ = stage;
  since_ = loop_.Now();
  loop_.Cancel(timer_);
  timer_ = loop_.After(limit, [this] {
    const std::shared_ptr<Connection> self = shared_from_this();
    End();
  });
}

void Connection::OnReady() { stage_ == Stage::kSending ? Send() : Read(); }

void Connection::Read() {
  std::array<char, kReadBytes> buffer{};
  const ssize_t bytes = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (bytes <= 0) {
    End();
    return;
  }
  arrived_.append(buffer.data(), static_cast<size_t>(bytes));
  if (stage_ == Stage::kIdle) {
    Enter(Stage::kHead, limits_.head);
  }
  Next();
}

void Connection::Next() {
  request_ = ReadRequest(arrived_);
  if (request_.status == 0) {
    loop_.Rearm(watch_, EPOLLIN);
    return;
  }
  // Nothing is read until this one is answered.
  loop_.Rearm(watch_, 0);
  arrived_.erase(0, request_.bytes);
  Enter(Stage::kAsking, limits_.answer);
  if (request_.status != 200) {
    Answer(std::make_shared<const std::string>(request_.complaint + "\n"));
    return;
  }
  pages_.Ask(request_.format, [weak = weak_from_this()](Page page) {
    if (const std::shared_ptr<Connection> self = weak.lock()) {
      self->Answer(std::move(page));
    }
  });
}

void Connection::Answer(Page page) {
  if (stage_ != Stage::kAsking) {
    return;
  }
  if (!page) {
    request_.status = 503;
    request_.keep_alive = false;
    page = std::make_shared<const std::string>("too many scrapes wait\n");
  }
  stage_ = Stage::kSending;
  head_ = HeadOf(request_, page->size());
  page_ = request_.head_only ? nullptr : std::move(page);
  head_sent_ = 0;
  page_sent_ = 0;
  Send();
}

void Connection::Send() {
  if (SendPart(head_, head_sent_) && (!page_ || SendPart(*page_, page_sent_))) {
    Sent();
  }
}

/// Whether all of it is sent.
bool Connection::SendPart(const std::string& part, size_t& sent) {
  while (sent < part.size()) {
    const ssize_t bytes = send(socket_.get(), part.data() + sent, part.size() - sent, MSG_NOSIGNAL);
    if (bytes > 0) {
      sent += static_cast<size_t>(bytes);
    } else if (bytes < 0 && errno == EAGAIN) {
      loop_.Rearm(watch_, EPOLLOUT);
      return false;
    } else if (bytes == 0 || errno != EINTR) {
      End();
      return false;
    }
  }
  return true;
}

void Connection::Sent() {
  page_.reset();
  if (!request_.keep_alive) {
    shutdown(socket_.get(), SHUT_WR);
    End();
    return;
  }
  Enter(arrived_.empty() ? Stage::kIdle : Stage::kHead,
        arrived_.empty() ? limits_.idle : limits_.head);
  loop_.Rearm(watch_, EPOLLIN);
  if (!arrived_.empty()) {
    // Not from here: many may have been sent at once.
    loop_.Post([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && self->stage_ == Stage::kHead) {
        self->Next();
      }
    });
  }
}

}  // namespace gantry::metrics
