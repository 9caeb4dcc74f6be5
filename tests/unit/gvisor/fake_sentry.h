// SPDX-License-Identifier: Apache-2.0
//
// A control server that answers as the test says, one thread for each connection.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/deadline.h>
#include <gantry/unique_fd.h>

namespace gantry::urpc {

using Json = nlohmann::json;

/// No test waits longer.
inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

struct FakeAnswer {
  /// As it goes onto the socket.
  std::string bytes;
  std::vector<int> fds;
  /// The connection ends behind it.
  bool then_close = false;

  static FakeAnswer Of(const Json& result);
  static FakeAnswer Refusing(const std::string& err);
};

/// Thread: its own. Where it is destroyed, its connections end.
class FakeSentry {
 public:
  /// `answer`: what a request gets, with the descriptors that came with it.
  using Handler = std::function<FakeAnswer(const Json& request, std::vector<UniqueFd>& fds)>;

  FakeSentry(std::string path, Handler answer);
  FakeSentry(const FakeSentry&) = delete;
  FakeSentry& operator=(const FakeSentry&) = delete;
  ~FakeSentry();

  size_t accepted() const { return accepted_; }

  /// Ends all connections that there are, from its side.
  void CutOff();

 private:
  void Accept();
  void Serve(int fd);
  /// False: it has ended.
  bool AnswerNext(int fd);

  const std::string path_;
  const Handler answer_;
  UniqueFd listener_;
  std::atomic<size_t> accepted_ = 0;
  /// Guards `connections_`.
  std::mutex mutex_;
  std::vector<UniqueFd> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace gantry::urpc
