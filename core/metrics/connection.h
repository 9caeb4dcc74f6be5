// SPDX-License-Identifier: Apache-2.0
//
// One scraper's connection: requests come in one after the other, each gets its answer. It has no
// thread and waits for nobody; who is slow is closed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/metrics/pages.h"
#include "core/metrics/request.h"

namespace gantry::metrics {

struct ConnectionLimits {
  /// Between two requests, and before the first.
  async::Duration idle = std::chrono::seconds(120);
  /// From a request's first byte to the end of its head.
  async::Duration head = std::chrono::seconds(5);
  /// From there until its answer has been taken.
  async::Duration answer = std::chrono::seconds(10);
};

/// Thread: loop.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  /// All outlive it. `closed` is called once, when it is of no more use, and not by `Close`.
  Connection(async::Loop& loop, UniqueFd socket, Pages& pages, const ConnectionLimits& limits,
             std::function<void(const Connection&)> closed);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Begin();
  void Close();

  /// No request is whole.
  bool idle() const { return stage_ == Stage::kIdle || stage_ == Stage::kHead; }

  /// It is in its stage.
  async::TimePoint since() const { return since_; }

  /// The page that it has not sent all of; null: none.
  const Page& page() const { return page_; }

 private:
  enum class Stage { kIdle, kHead, kAsking, kSending, kClosed };

  void Enter(Stage stage, async::Duration limit);
  void OnReady();
  void Read();
  /// Looks at what has arrived.
  void Next();
  void Answer(Page page);
  void Send();
  bool SendPart(const std::string& part, size_t& sent);
  void Sent();
  void End();

  async::Loop& loop_;
  UniqueFd socket_;
  Pages& pages_;
  const ConnectionLimits& limits_;
  std::function<void(const Connection&)> closed_;
  async::WatchId watch_;
  async::TimerId timer_;
  Stage stage_ = Stage::kIdle;
  async::TimePoint since_;
  /// What has arrived of a request, and behind it.
  std::string arrived_;
  Request request_;
  /// The answer: its head, and its body. And how much of each is sent.
  std::string head_;
  Page page_;
  size_t head_sent_ = 0;
  size_t page_sent_ = 0;
};

}  // namespace gantry::metrics
