// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/qmp.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <gantry/json.h>

namespace gantry::vmm {
namespace {

using Kind = QmpMessage::Kind;

constexpr const char* kQemu = "QEMU";
/// What a look at what has been read may wait for its turn.
constexpr std::chrono::seconds kLook{1};
/// The others are of no use to anybody here.
constexpr std::array<std::string_view, 6> kKept = {"SHUTDOWN",         "GUEST_PANICKED",
                                                   "DEVICE_DELETED",   "DEVICE_UNPLUG_GUEST_ERROR",
                                                   "MEM_UNPLUG_ERROR", "MIGRATION"};

/// Source: QEMU 10.0, qapi/error.json, QapiErrorClass.
Code CodeOf(std::string_view error_class) {
  if (error_class == "DeviceNotFound") {
    return Code::kNotFound;
  }
  if (error_class == "CommandNotFound") {
    return Code::kUnimplemented;
  }
  if (error_class == "DeviceNotActive" || error_class == "KVMMissingCap") {
    return Code::kFailedPrecondition;
  }
  return Code::kInternal;
}

Error Within(std::string_view command, Error error) {
  return std::move(error).Within(Format("ask QEMU to '{}'", command));
}

void Wake(const std::weak_ptr<UniqueFd>& waker) {
  const uint64_t one = 1;
  if (const auto waits = waker.lock()) {
    // It is readable already where it cannot take more.
    [[maybe_unused]] const ssize_t written = write(waits->get(), &one, sizeof(one));
  }
}

}  // namespace

Status Qmp::Connect(Deadline deadline, const HostProcess* process) {
  GANTRY_TRY(const auto held, lock_.Take("connect to QEMU", deadline));
  if (connection_) {
    return {};
  }
  GANTRY_TRY(ControlSocket socket, ControlSocket::Await(kQemu, path_, deadline, process));
  return Greet(std::move(socket), deadline);
}

Status Qmp::Reconnect(Deadline deadline) {
  if (connection_) {
    return {};
  }
  GANTRY_TRY(ControlSocket socket, ControlSocket::Open(kQemu, path_, deadline));
  return Greet(std::move(socket), deadline);
}

Status Qmp::Greet(ControlSocket socket, Deadline deadline) {
  connection_ = std::make_unique<Connection>(std::move(socket));
  Result<QmpMessage> greeting = ReadMessage(deadline);
  while (greeting && greeting->kind == Kind::kEvent) {
    Keep(*std::move(greeting));
    greeting = ReadMessage(deadline);
  }
  if (!greeting) {
    connection_.reset();
    return std::unexpected(std::move(greeting).error().Within("greet QEMU"));
  }
  if (greeting->kind != Kind::kGreeting) {
    connection_.reset();
    return Fail(Code::kDataLoss, "greet QEMU: what listens at '{}' is no QEMU monitor", path_);
  }
  if (Result<Json> agreed = ExecuteNow("qmp_capabilities", Json(), deadline, {}); !agreed) {
    connection_.reset();
    return std::unexpected(std::move(agreed).error());
  }
  return {};
}

Result<Json> Qmp::Execute(std::string_view command, const Json& arguments, Deadline deadline,
                          std::span<const int> fds) {
  Result<RequestLock::Held> held = lock_.Take(Format("ask QEMU to '{}'", command), deadline);
  if (!held) {
    return std::unexpected(std::move(held).error());
  }
  if (Status connected = Reconnect(deadline); !connected) {
    return std::unexpected(Within(command, std::move(connected).error()));
  }
  return ExecuteNow(command, arguments, deadline, fds);
}

Result<Json> Qmp::ExecuteNow(std::string_view command, const Json& arguments, Deadline deadline,
                             std::span<const int> fds) {
  const uint64_t id = ++last_id_;
  Json request = {{"execute", command}, {"id", id}};
  if (!arguments.is_null()) {
    request["arguments"] = arguments;
  }
  if (Status sent = connection_->socket.Send(request.dump() + "\n", fds, deadline); !sent) {
    // A part of it may be on its way.
    connection_.reset();
    return std::unexpected(Within(command, std::move(sent).error()));
  }
  Result<Json> answer = ReadAnswer(id, deadline);
  if (!answer) {
    return std::unexpected(Within(command, std::move(answer).error()));
  }
  return answer;
}

Result<Json> Qmp::ReadAnswer(uint64_t id, Deadline deadline) {
  while (true) {
    Result<QmpMessage> message = ReadMessage(deadline);
    if (!message) {
      if (message.error().code != Code::kDeadlineExceeded) {
        connection_.reset();
      }
      return std::unexpected(std::move(message).error());
    }
    if (message->kind == Kind::kEvent) {
      Keep(*std::move(message));
      continue;
    }
    if (message->id.value_or(id) < id) {
      // Of one that nobody has waited for.
      continue;
    }
    if (message->id != id) {
      connection_.reset();
      return Fail(Code::kDataLoss, "QEMU answered something that was not asked{}{}",
                  message->text.empty() ? "" : ": ", message->text);
    }
    if (message->kind == Kind::kError) {
      return Fail(CodeOf(message->name), "it answered {}: {}", message->name, message->text);
    }
    return std::move(message->value);
  }
}

Result<QmpMessage> Qmp::ReadMessage(Deadline deadline) {
  while (true) {
    GANTRY_TRY(std::optional<std::string> line, connection_->lines.Next());
    if (line) {
      return ParseQmp(*line);
    }
    GANTRY_CHECK_OK(connection_->socket.Receive(connection_->lines.buffer(), deadline));
  }
}

Status Qmp::ReadWaiting() {
  size_t read = 0;
  while (connection_ && read < kQmpLimits.bytes) {
    const size_t before = connection_->lines.buffer().size();
    GANTRY_TRY(std::optional<std::string> line, connection_->lines.Next());
    if (!line) {
      GANTRY_TRY(const bool some, connection_->socket.ReceiveNow(connection_->lines.buffer()));
      if (!some) {
        break;
      }
      // The rest of a flood is there the next time.
      read += connection_->lines.buffer().size() - before;
      continue;
    }
    GANTRY_TRY(QmpMessage message, ParseQmp(*line));
    Keep(std::move(message));
  }
  return {};
}

void Qmp::Keep(QmpMessage message) {
  if (message.kind != Kind::kEvent || !std::ranges::contains(kKept, message.name)) {
    return;
  }
  if (events_.size() == kMaxEvents) {
    events_.pop_front();
  }
  events_.push_back({.name = std::move(message.name), .data = std::move(message.value)});
  std::ranges::for_each(wakers_, Wake);
  // Whoever was woken looks, and says so again where it was not what he waits for.
  wakers_.clear();
}

std::optional<QmpEvent> Qmp::Take(const std::function<bool(const QmpEvent&)>& is_it) {
  const auto found = std::ranges::find_if(events_, is_it);
  if (found == events_.end()) {
    return std::nullopt;
  }
  QmpEvent event = std::move(*found);
  events_.erase(found);
  return event;
}

Result<std::optional<QmpEvent>> Qmp::Look(std::string_view what,
                                          const std::function<bool(const QmpEvent&)>& is_it,
                                          const std::shared_ptr<UniqueFd>& waker,
                                          UniqueFd& readable, Deadline deadline) {
  GANTRY_TRY(const auto held, lock_.Take(what, deadline));
  std::erase_if(wakers_, [&waker](const auto& one) {
    const auto waits = one.lock();
    return !waits || waits == waker;
  });
  if (std::optional<QmpEvent> event = Take(is_it)) {
    return event;
  }
  GANTRY_CHECK_OK(Reconnect(deadline));
  if (Status read = ReadWaiting(); !read) {
    connection_.reset();
    return std::unexpected(std::move(read).error());
  }
  if (std::optional<QmpEvent> event = Take(is_it)) {
    return event;
  }
  GANTRY_TRY(readable, connection_->socket.fd().Duplicate());
  wakers_.push_back(waker);
  return std::nullopt;
}

Result<QmpEvent> Qmp::Await(std::string_view what,
                            const std::function<bool(const QmpEvent&)>& is_it, Deadline deadline) {
  const auto waker = std::make_shared<UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!*waker) {
    return FailErrno(errno, "await {}", what);
  }
  while (true) {
    UniqueFd readable;
    Result<std::optional<QmpEvent>> looked = Look(what, is_it, waker, readable, deadline);
    if (!looked) {
      return std::unexpected(std::move(looked).error().Within(Format("await {}", what)));
    }
    if (std::optional<QmpEvent>& event = *looked; event) {
      return *std::move(event);
    }
    std::array<pollfd, 2> both{{{readable.get(), POLLIN, 0}, {waker->get(), POLLIN, 0}}};
    poll(both.data(), both.size(), PollTimeout(deadline));
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(waker->get(), &count, sizeof(count));
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(Code::kDeadlineExceeded, "await {}: it has not come in time", what);
    }
  }
}

void Qmp::Forget(const std::function<bool(const QmpEvent&)>& is_it) {
  const auto held = lock_.Take("forget events", std::chrono::steady_clock::now() + kLook);
  if (held) {
    IgnoreError(ReadWaiting(), "the next request tells it");
    std::erase_if(events_, is_it);
  }
}

std::optional<QmpEvent> Qmp::Newest(std::string_view name) {
  const auto held = lock_.Take("look at events", std::chrono::steady_clock::now() + kLook);
  if (!held) {
    return std::nullopt;
  }
  IgnoreError(ReadWaiting(), "what came before is there");
  const auto found = std::ranges::find(events_.rbegin(), events_.rend(), name, &QmpEvent::name);
  return found == events_.rend() ? std::nullopt : std::optional(*found);
}

}  // namespace gantry::vmm
