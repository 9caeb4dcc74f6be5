// SPDX-License-Identifier: Apache-2.0
//
// The connection to a guest's agent as it comes and goes. The agent dials; when its connection is
// lost (this engine came after another one, or one side gave the other up) it dials again, and
// shows by the session that it is the agent and no process of a container.
//
// It has no thread. Of its two watches one reads what the agent says and calls `AgentEvents`, the
// other takes connections and calls `again`, which may ask the agent, but not wait for its answer:
// nobody else would be heard meanwhile. Who dials and says nothing is waited for by neither
// (agent/newcomers.h).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/agent/client.h"
#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/agent/greet.h"
#include "plugins/vmm/agent/newcomers.h"

namespace gantry::vmm {

struct AgentLinkEvents {
  std::function<void(const AgentExit& exit)> exited;
  std::function<void(const std::string& container, uint64_t kills)> out_of_memory;
  std::function<void(const std::string& line)> log;
  /// The agent has dialled another time; what it told meanwhile is lost.
  std::function<void()> again;
  /// The connection is gone; not where it was closed here. One at a time, but the next one may have
  /// come already: see `AgentLink::connected`.
  std::function<void()> lost;
};

/// Thread: any.
class AgentLink {
 public:
  /// `listener`: of the control port, which does not block. `session`: of the agent that is known;
  /// empty: the first is taken. Errors: as `SandboxContext::WatchReadable`.
  static Result<std::unique_ptr<AgentLink>> On(SandboxContext& context, std::string name,
                                               UniqueFd listener, std::string session,
                                               AgentLinkEvents events);
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;
  ~AgentLink() = default;

  /// The first one, greeted elsewhere. `Watch` belongs behind it.
  void Take(Greeted greeted);
  /// Connections are taken from now on.
  Status Watch();

  /// Errors: those of the agent; kDeadlineExceeded; kUnavailable: the link is closed, or the
  /// connection broke meanwhile. Blocks: up to `deadline`, also while there is no connection.
  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline);

  /// As `AgentClient::Post`. Errors: kUnavailable: there is no connection.
  Status Post(protocol::Kind kind, std::string body,
              std::function<void(Result<std::string> answer)> answered);

  /// For good: all calls end with `why`, now and later. Again: nothing.
  void Close(const Error& why);

  /// Waits until there is no connection: all that came on it has been told then.
  void AwaitLoss(Deadline deadline);

  /// Closes it; no event is called any more when it returns. Not within an event.
  void Stop();

  /// Who has dialled: before `Watch` the caller's to hear.
  Newcomers& newcomers() { return *newcomers_; }

  bool connected() const;

  std::string session() const;
  /// Of the last agent; nothing before the first.
  std::optional<protocol::Hello> hello() const;

 private:
  AgentLink(SandboxContext& context, std::string name, std::unique_ptr<Newcomers> newcomers,
            UniqueFd epoll, std::string session, AgentLinkEvents events);

  void OnDial();
  void OnSaid();
  void Lost(const AgentClient* client);

  SandboxContext& context_;
  const std::string name_;
  const std::unique_ptr<Newcomers> newcomers_;
  /// Has the client's socket in it, while there is one.
  const UniqueFd epoll_;
  const AgentLinkEvents events_;
  /// Of what is said of strangers, who may dial as often as they like. Of `OnDial`.
  LineLimit lines_;

  /// Guards what follows.
  mutable Mutex mutex_;
  std::condition_variable came_;
  std::shared_ptr<AgentClient> client_ GANTRY_GUARDED_BY(mutex_);
  std::string session_ GANTRY_GUARDED_BY(mutex_);
  std::optional<protocol::Hello> hello_ GANTRY_GUARDED_BY(mutex_);
  std::optional<Error> closed_ GANTRY_GUARDED_BY(mutex_);

  /// Last, so that they end first.
  std::unique_ptr<gantry::Watch> reads_;
  std::unique_ptr<gantry::Watch> dials_;
};

}  // namespace gantry::vmm
