// SPDX-License-Identifier: Apache-2.0
//
// QEMU's monitor. Each request has a number, and so has its answer; what is late for a request
// that nobody waits for any more is thrown away. Of events those are kept that somebody may ask
// for, a few of each: a guest can cause any number.
//
// One connection, made when it is first needed and made anew when it was lost: QEMU serves one
// client at a time and waits for the next when that one has gone. Events of the time between are
// lost, so whoever waits for one looks at what it would have told, too.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/control_socket.h"
#include "plugins/vmm/hypervisor/json.h"
#include "plugins/vmm/hypervisor/qemu/qmp_message.h"
#include "plugins/vmm/hypervisor/request_lock.h"

namespace gantry::vmm {

struct QmpEvent {
  std::string name;
  Json data;
};

/// Errors: those of hypervisor.h, with the command. Thread: any. Blocks: up to the deadlines.
class Qmp {
 public:
  /// Of events that nobody has asked for yet; the oldest go.
  static constexpr size_t kMaxEvents = 64;

  explicit Qmp(std::string path) : path_(std::move(path)) {}

  Qmp(const Qmp&) = delete;
  Qmp& operator=(const Qmp&) = delete;
  ~Qmp() = default;

  /// Greets. `process` as in `Hypervisor::Connect`. Again: nothing where it is connected.
  Status Connect(Deadline deadline, const HostProcess* process);

  /// `fds` go with the request, borrowed (getfd).
  Result<Json> Execute(std::string_view command, const Json& arguments, Deadline deadline,
                       std::span<const int> fds = {});

  /// The first event that `is_it` takes, which is then forgotten. Nobody else has to wait
  /// meanwhile. Errors: kDeadlineExceeded: none came. `what` is what errors call it.
  Result<QmpEvent> Await(std::string_view what, const std::function<bool(const QmpEvent&)>& is_it,
                         Deadline deadline);

  /// Of those that have been kept.
  void Forget(const std::function<bool(const QmpEvent&)>& is_it);

  /// What has come of a name, the newest; without waiting, and after the connection's end too.
  std::optional<QmpEvent> Newest(std::string_view name);

 private:
  struct Connection {
    ControlSocket socket;
    QmpLines lines{kQmpLimits.bytes};
  };

  /// All of these in one's turn.
  /// Where it was lost. Nobody has to be waited for: a QEMU that listened listens, or is gone.
  Status Reconnect(Deadline deadline);
  Status Greet(ControlSocket socket, Deadline deadline);
  Result<Json> ExecuteNow(std::string_view command, const Json& arguments, Deadline deadline,
                          std::span<const int> fds);
  Result<QmpMessage> ReadMessage(Deadline deadline);
  Result<Json> ReadAnswer(uint64_t id, Deadline deadline);
  /// What lies in the socket, at most as much as an answer may have.
  Status ReadWaiting();
  void Keep(QmpMessage message);
  std::optional<QmpEvent> Take(const std::function<bool(const QmpEvent&)>& is_it);
  /// Looks once; a descriptor to wait at where it is not there.
  Result<std::optional<QmpEvent>> Look(std::string_view what,
                                       const std::function<bool(const QmpEvent&)>& is_it,
                                       const std::shared_ptr<UniqueFd>& waker, UniqueFd& readable,
                                       Deadline deadline);

  const std::string path_;
  RequestLock lock_;
  /// Null: there is none.
  std::unique_ptr<Connection> connection_;
  uint64_t last_id_ = 0;
  std::deque<QmpEvent> events_;
  /// Of those who wait for an event, as long as they do.
  std::vector<std::weak_ptr<UniqueFd>> wakers_;
};

}  // namespace gantry::vmm
