// SPDX-License-Identifier: Apache-2.0
//
// A ttrpc server on a loop that does what the test says: it collects requests,
// and answers them when, how and in which order the test wants.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/async/loop.h"
#include "core/os/fs.h"
#include "core/os/splice.h"
#include "core/rpc/ttrpc.h"

namespace gantry::test {

class FakeServer {
 public:
  struct Received {
    uint64_t connection = 0;
    uint32_t stream = 0;
    rpc::Request request;
  };

  explicit FakeServer(async::Loop& loop) : loop_(loop) {}

  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  ~FakeServer() { GoAway(); }

  /// Called for each request; left empty, all are answered with an empty message.
  std::function<void(const Received&)> on_request;
  std::vector<Received> requests;
  int accepted = 0;

  void Listen(const std::string& path) {
    path_ = path;
    listener_ = Value(ListenUnix(path));
    listen_watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  }

  void Adopt(UniqueFd socket) {
    const uint64_t id = next_id_++;
    Connection& connection = connections_[id];
    connection.socket = std::move(socket);
    connection.watch =
        loop_.Watch(connection.socket.get(), EPOLLIN, [this, id](uint32_t) { Read(id); });
    ++accepted;
  }

  void Answer(const Received& received, const Result<std::string>& result) {
    SendRaw(received.connection, Value(rpc::EncodeFrame(received.stream, rpc::FrameType::kResponse,
                                                        0, rpc::EncodeResponse(result))));
  }

  /// Short ones only: what does not fit the socket at once is an error here.
  void SendRaw(uint64_t id, const std::string& bytes) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
      return;
    }
    const auto put = SendWithFds(found->second.socket.get(), bytes, {});
    if (put && put->bytes != bytes.size()) {
      throw std::runtime_error("the answer did not fit the socket");
    }
  }

  void CloseConnections() {
    for (auto& [id, connection] : connections_) {
      loop_.Unwatch(connection.watch);
    }
    connections_.clear();
  }

  /// As a containerd that has ended.
  void GoAway() {
    CloseConnections();
    if (listener_) {
      loop_.Unwatch(listen_watch_);
      listener_.reset();
      IgnoreError(RemoveFile(path_), "the next listener says so");
    }
  }

  size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    UniqueFd socket;
    async::WatchId watch;
    rpc::FrameSplitter frames;
  };

  template <class T>
  static T Value(Result<T> result) {
    if (!result) {
      throw std::runtime_error(result.error().message);
    }
    return std::move(*result);
  }

  void Accept() {
    if (std::optional<UniqueFd> socket = Value(AcceptUnix(listener_.get()))) {
      Adopt(std::move(*socket));
    }
  }

  void Read(uint64_t id) {
    std::array<char, 65536> buffer;
    const auto got = os::ReadSome(connections_.at(id).socket.get(), buffer);
    if (!got || got->end) {
      loop_.Unwatch(connections_.at(id).watch);
      connections_.erase(id);
      return;
    }
    connections_.at(id).frames.Feed(std::string_view(buffer.data(), got->bytes));
    // A request may make the test close this connection.
    while (connections_.contains(id)) {
      std::optional<rpc::Frame> frame = connections_.at(id).frames.Next();
      if (!frame) {
        return;
      }
      requests.push_back({id, frame->header.stream, Value(rpc::DecodeRequest(frame->data))});
      const Received received = requests.back();
      if (on_request) {
        on_request(received);
      } else {
        Answer(received, std::string());
      }
    }
  }

  async::Loop& loop_;
  std::string path_;
  UniqueFd listener_;
  async::WatchId listen_watch_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Connection> connections_;
};

}  // namespace gantry::test
