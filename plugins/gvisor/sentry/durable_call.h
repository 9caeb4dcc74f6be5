// SPDX-License-Identifier: Apache-2.0
//
// A call that must be neither repeated nor lost when the engine is killed in the middle: its
// connection lies in the keeper's store before anything is sent, and the answer stays in the
// socket until it has been acted on. The next engine takes the connection up: if nothing had
// been sent, a question that no sentry understands gets its answer at once, and else the
// answer of the call comes first.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>

#include "plugins/gvisor/urpc/connection.h"

namespace gantry {
class SandboxContext;
}

namespace gantry::gvisor {

/// One such call, to be settled by its owner when what it says has been acted on, or he gives
/// it up. What its state does not allow is a kLocal failure, of kFailedPrecondition, and changes
/// nothing. Thread: one at a time.
class DurableCall {
 public:
  enum class State {
    /// Connected; nothing is stored yet.
    kOpened,
    /// Nothing has been sent: destroyed now, it is dropped from the store.
    kStored,
    /// An engine before this one has stored it, and perhaps sent it.
    kTakenUp,
    /// Destroyed from here on, it stays stored: the next engine is to hear its answer, too.
    kSent,
    kAnswered,
    /// Nothing of it is stored.
    kSettled,
  };

  /// Connects. `name`: in the sandbox's store. Errors: as `urpc::Connection::Open`.
  static urpc::Outcome<DurableCall> Open(SandboxContext& context, const std::string& socket,
                                         std::string name, Deadline deadline);
  /// Stores those of one sandbox, in the time of one. Errors: kLocal: all are settled.
  static urpc::Outcome<void> Store(std::initializer_list<DurableCall*> calls);
  /// Opens, stores and sends one. Errors: of all; nothing stays stored.
  static urpc::Outcome<DurableCall> Begin(SandboxContext& context, const std::string& socket,
                                          std::string name, const urpc::Request& request,
                                          Deadline deadline);
  /// What an engine before this one has stored. Errors: kNotFound: nothing.
  static Result<DurableCall> TakeUp(SandboxContext& context, std::string name);

  /// One that is under way, and stored nowhere: settled.
  static DurableCall NotStored(SandboxContext& context, urpc::Connection connection) {
    return {context, {}, std::move(connection), State::kSettled};
  }

  DurableCall(DurableCall&& other) noexcept
      : context_(other.context_),
        name_(std::move(other.name_)),
        connection_(std::move(other.connection_)),
        state_(std::exchange(other.state_, State::kSettled)) {}

  DurableCall& operator=(DurableCall&& other) = delete;
  DurableCall(const DurableCall&) = delete;
  DurableCall& operator=(const DurableCall&) = delete;
  ~DurableCall();

  State state() const { return state_; }

  /// Of one that is stored, or taken up. Errors: as `urpc::Connection::Send`; it is as it was.
  urpc::Outcome<void> Send(const urpc::Request& request, Deadline deadline);
  /// The answer, again and again, of one that was sent. Errors: as `urpc::Connection::Peek`.
  urpc::Outcome<urpc::Answer> Peek(std::string_view method, Deadline deadline);

  /// Of one that was taken up: it is readable as soon as the sentry is done with it, also where it
  /// had not been sent. Errors: as `urpc::Connection::Send`.
  urpc::Outcome<void> AskWhetherSent(Deadline deadline);
  /// The same, and waits for that: true: its answer has come. False: it had not been sent. Either
  /// way it stays stored until it is settled, since only its owner knows what else is to go before
  /// it. Errors: kGone: the sentry has ended; kDeadline; kLocal. It stays stored.
  urpc::Outcome<bool> WasSent(Deadline deadline);

  /// An answer is there, or the sentry has gone.
  bool IsReadable() const { return connection_.IsReadable(); }

  /// Nothing of it stays stored; its connection stays open. Again: nothing.
  void Settle();
  /// Its connection. What is stored stays so, and is to be dropped by its name.
  urpc::Connection Release() &&;

 private:
  DurableCall(SandboxContext& context, std::string name, urpc::Connection connection, State state)
      : context_(&context),
        name_(std::move(name)),
        connection_(std::move(connection)),
        state_(state) {}

  urpc::Outcome<void> Check(std::string_view what, State one, State other) const;

  SandboxContext* context_;
  std::string name_;
  urpc::Connection connection_;
  State state_;
};

/// A name for the store, where ids would be too long: `start/0123456789abcdef`.
std::string StoreName(std::string_view what, std::string_view container,
                      std::string_view exec = {});

/// The calls of one process, in the store: how it starts, and how it ends.
struct CallNames {
  std::string start;
  std::string wait;

  static CallNames OfContainer(std::string_view id) {
    return {.start = StoreName("start", id), .wait = StoreName("wait", id)};
  }

  static CallNames OfExec(std::string_view container, std::string_view id) {
    return {.start = StoreName("exec", container, id),
            .wait = StoreName("exec-wait", container, id)};
  }

  /// What there is of them, of this engine or one before.
  void Drop(SandboxContext& context) const;
};

}  // namespace gantry::gvisor
