// SPDX-License-Identifier: Apache-2.0
//
// What has happened lately, for operators: Events of proto/gantry/operator.proto. The events are in
// a memfd that the keeper holds besides, so an engine that ends loses none, and who waits for the
// next one waits at the keeper.
//
// Of engine and keeper it is found out by what the keeper counts: whenever an engine comes up, and
// whenever somebody asks for events, its counts are held against those of the last time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/events/event.h"
#include "core/events/recent.h"
#include "core/events/sandbox_event.h"
#include "core/link/status_messages.h"
#include "core/rpc/method_table.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::engine {

/// Thread: loop.
class EventFeed {
 public:
  /// Owner: takes `memfd`; the keeper has another descriptor of it. `loop` outlives it.
  static Result<std::unique_ptr<EventFeed>> Open(async::Loop& loop, UniqueFd memfd);
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;
  ~EventFeed() = default;

  /// `sandbox`: the pod that its container is in; empty: none.
  void OnTask(const events::Event& event, const std::string& sandbox);
  void OnSandbox(const events::SandboxEvent& event);

  /// This engine.
  struct Engine {
    std::string version;
    uint32_t pid = 0;
    /// It was started beside the one before it, and has taken its place.
    bool took_over = false;
  };

  /// An engine has come up. `keeper`: null where it did not say.
  void OnUp(const Engine& engine, const link::KeeperStatus* keeper);

  /// What is done first where somebody asks for events: OnKeeper. Once.
  void LookFirst(std::function<async::Task<void>()> look) { look_ = std::move(look); }

  /// The keeper may have become another program, or have found an engine hanging.
  void OnKeeper(const link::KeeperStatus& keeper);

  /// Waits where there is nothing yet. Errors: of reading the memfd. `call`: until it is abandoned.
  async::Task<Result<v1::EventsResponse>> Read(const rpc::CallContext& call,
                                               v1::EventsRequest request);

 private:
  EventFeed(async::Loop& loop, std::unique_ptr<events::Recent> recent)
      : loop_(loop), recent_(std::move(recent)) {}

  void Add(v1::Event event);
  /// What there is behind `response.last()`, into it.
  Status Fill(const v1::EventsRequest& request, v1::EventsResponse& response) const;
  void Compare(const link::KeeperStatus& keeper);

  async::Loop& loop_;
  std::unique_ptr<events::Recent> recent_;
  std::function<async::Task<void>()> look_;
  uint64_t next_wait_ = 1;
  /// Of those that wait for the next event.
  std::map<uint64_t, async::OneShot<void>> waits_;
};

}  // namespace gantry::engine
