// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 server on a UNIX socket, as VMMs have it, that answers as a double says or as a test
// wants it to go wrong.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gantry/unique_fd.h>

namespace gantry::test {

struct RestCall {
  std::string method;
  std::string target;
  std::string body;
  std::vector<UniqueFd> fds;
};

struct RestReply {
  int status = 204;
  /// JSON; empty: none.
  std::string body{};
  /// Called when it has been sent. Null: nothing.
  std::function<void()> then{};
};

enum class RestFault {
  /// The connection stays open, and nothing comes.
  kHang,
  /// It is closed without an answer.
  kDrop,
  /// A part of the answer, then the end.
  kHalf,
  /// The answer one byte at a time.
  kPiecemeal,
  /// `bytes` in its place.
  kBytes,
};

/// Thread: its own, one for each connection. Where it is destroyed, its connections end.
class RestServer {
 public:
  using Handler = std::function<RestReply(RestCall& call)>;

  /// `listener`: that of a VMM's control socket.
  RestServer(UniqueFd listener, Handler handler);
  RestServer(const std::string& path, Handler handler);
  RestServer(const RestServer&) = delete;
  RestServer& operator=(const RestServer&) = delete;
  ~RestServer();

  /// The next request whose target ends so goes wrong in that way. It has its effect all the same.
  void FailNext(const std::string& target, RestFault fault, std::string bytes = {});

  /// "PUT /api/v1/vm.create {...}", each in its line, in order.
  std::vector<std::string> Requests() const;
  /// How many were under way at once, at most.
  int MostAtOnce() const;

 private:
  struct Wrong {
    std::string target;
    RestFault fault;
    std::string bytes;
  };

  void Accept();
  void Serve(int fd);
  bool ReadCall(int fd, RestCall& call);
  void Answer(int fd, const RestCall& call, const RestReply& reply);
  static std::string TextOf(const RestReply& reply);

  const Handler handler_;
  UniqueFd listener_;
  /// Guards all below.
  mutable std::mutex mutex_;
  std::vector<UniqueFd> connections_;
  std::vector<std::thread> threads_;
  std::vector<Wrong> wrong_;
  std::vector<std::string> requests_;
  int at_once_ = 0;
  int most_at_once_ = 0;
  bool ended_ = false;
  std::thread acceptor_;
};

}  // namespace gantry::test
