// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/qmp_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::test {

using Json = nlohmann::json;

Json Returns(Json value) { return Json::object({{"return", std::move(value)}}); }

Json QmpError(const std::string& error_class, const std::string& text) {
  return Json::object({{"error", {{"class", error_class}, {"desc", text}}}});
}

QmpServer::QmpServer(UniqueFd listener, Handler handler)
    : handler_(std::move(handler)), listener_(std::move(listener)) {
  SetNonblocking(listener_.get(), false).value();
  thread_ = std::thread([this] { Accept(); });
}

QmpServer::~QmpServer() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    if (connection_) {
      shutdown(connection_.get(), SHUT_RDWR);
    }
  }
  thread_.join();
}

void QmpServer::FailNext(const std::string& command, QmpFault fault, std::string bytes) {
  const std::lock_guard lock(mutex_);
  wrong_.push_back({command, fault, std::move(bytes)});
}

void QmpServer::Send(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

void QmpServer::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (connection_) {
    Send(connection_.get(), line + "\r\n");
  }
}

void QmpServer::Emit(const std::string& event, const Json& data) {
  Say(Json{{"timestamp", {{"seconds", 1}, {"microseconds", 2}}}, {"event", event}, {"data", data}}
          .dump());
}

void QmpServer::CutOff() {
  const std::lock_guard lock(mutex_);
  if (connection_) {
    shutdown(connection_.get(), SHUT_RDWR);
  }
}

std::vector<std::string> QmpServer::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int QmpServer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

void QmpServer::Accept() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int number = fd.get();
    {
      const std::lock_guard lock(mutex_);
      if (!fd || ended_) {
        return;
      }
      ++connections_;
      connection_ = std::move(fd);
    }
    Serve(number);
    const std::lock_guard lock(mutex_);
    connection_.reset();
  }
}

void QmpServer::Serve(int fd) {
  Send(fd, R"({"QMP":{"version":{"qemu":{"micro":13,"minor":0,"major":10},"package":""},)"
           R"("capabilities":["oob"]}})"
           "\r\n");
  std::string text;
  std::vector<char> buffer(size_t{64} << 10);
  std::vector<UniqueFd> fds;
  while (true) {
    const auto got = RecvWithFds(fd, buffer, fds);
    if (!got || got->bytes == 0) {
      return;
    }
    text.append(buffer.data(), got->bytes);
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      const std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      if (!Answer(fd, line, fds)) {
        return;
      }
      fds.clear();
    }
  }
}

bool QmpServer::Answer(int fd, const std::string& line, std::vector<UniqueFd>& fds) {
  Json request = Json::parse(line, nullptr, false);
  const Json id = request["id"];
  request.erase("id");
  const auto command = request.value("execute", "");
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.dump());
  }
  Json reply = command == "qmp_capabilities" ? Returns() : handler_(request, fds);
  reply["id"] = id;
  return Reply(fd, command, reply.dump() + "\r\n");
}

bool QmpServer::Reply(int fd, const std::string& command, std::string text) {
  const std::lock_guard lock(mutex_);
  const std::string late = std::exchange(late_, {});
  const auto found =
      std::ranges::find_if(wrong_, [&](const Wrong& one) { return one.command == command; });
  if (found == wrong_.end()) {
    Send(fd, text + late);
    return true;
  }
  const Wrong wrong = *found;
  wrong_.erase(found);
  switch (wrong.fault) {
    case QmpFault::kSilence:
      return true;
    case QmpFault::kLate:
      late_ = std::move(text);
      return true;
    case QmpFault::kDrop:
      shutdown(fd, SHUT_RDWR);
      return false;
    case QmpFault::kHalf:
      Send(fd, std::string_view(text).substr(0, text.size() / 2));
      shutdown(fd, SHUT_RDWR);
      return false;
    case QmpFault::kBytes:
      Send(fd, wrong.bytes + text);
      return true;
  }
  return true;
}

}  // namespace gantry::test
