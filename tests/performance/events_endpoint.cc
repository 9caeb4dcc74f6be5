// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/events_endpoint.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cstdint>
#include <map>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/async/loop.h"
#include "core/os/splice.h"
#include "core/rpc/ttrpc.h"

namespace gantry::bench {
namespace {

struct Connection {
  UniqueFd socket;
  async::WatchId watch;
  rpc::FrameSplitter frames;
};

class Server {
 public:
  Server(int listener, int stop) : listener_(listener) {
    loop_.Watch(listener, EPOLLIN, [this](uint32_t) { Accept(); });
    loop_.Watch(stop, EPOLLIN, [this](uint32_t) { loop_.Stop(); });
  }

  void Run() { loop_.Run(); }

 private:
  void Accept() {
    auto accepted = AcceptUnix(listener_);
    if (!accepted || !*accepted) {
      return;
    }
    const int fd = (*accepted)->get();
    Connection& connection = connections_[fd];
    connection.socket = std::move(**accepted);
    connection.watch = loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t) { Serve(fd); });
  }

  void Serve(int fd) {
    Connection& connection = connections_.at(fd);
    std::array<char, 16384> buffer;
    const auto got = os::ReadSome(fd, buffer);
    if (!got || got->end) {
      loop_.Unwatch(connection.watch);
      connections_.erase(fd);
      return;
    }
    connection.frames.Feed(std::string_view(buffer.data(), got->bytes));
    while (const auto frame = connection.frames.Next()) {
      const auto answer = rpc::EncodeFrame(frame->header.stream, rpc::FrameType::kResponse, 0,
                                           rpc::EncodeResponse(rpc::Response{}));
      if (answer) {
        IgnoreError(SendWithFds(fd, *answer, {}), "its connection will end");
      }
    }
  }

  int listener_;
  async::Loop loop_;
  std::map<int, Connection> connections_;
};

}  // namespace

Status EventsEndpoint::Start(const std::string& path) {
  GANTRY_TRY(listener_, ListenUnix(path));
  stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([listener = listener_.get(), stop = stop_.get()] {
    Server server(listener, stop);
    server.Run();
  });
  return {};
}

EventsEndpoint::~EventsEndpoint() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

}  // namespace gantry::bench
