// SPDX-License-Identifier: Apache-2.0
//
// The half of `ProcessIo` that has to do with clients that stream. To all else a stream is as a
// fifo: the process has an end of a pipe. The pumps behind the other ends get the connections of
// clients, each of which is in the store before a byte of it is read or written.
//
// No connection is used before the process is on record (`Started`): until then the call that
// makes it may be undone, and come again with another engine, which finds the connection with the
// keeper as it was.
#include <utility>

#include <gantry/format.h>

#include "core/io/stdio_state.h"

namespace gantry::io {
namespace {

StreamWire::Role RoleOf(Stream stream) {
  return stream == Stream::kStdin ? StreamWire::Role::kReceiver : StreamWire::Role::kSender;
}

std::vector<std::string> NamesOfClient(Stream stream) {
  const size_t i = IndexOf(stream);
  return {kConnectionNames[i], kWireNames[i], kSentNames[i], kReceivedNames[i]};
}

}  // namespace

bool ProcessIo::State::Streams(Stream stream) const {
  return uri_.kind == StdioKind::kStreaming && !PathOf(uri_, stream).empty();
}

void ProcessIo::State::BeginPumpLocked(Stream stream, UniqueFd end) {
  const std::weak_ptr<State> weak = weak_from_this();
  StreamEvents events;
  events.ended = [weak, stream] {
    if (const auto state = weak.lock()) {
      state->OnPumpEnded(stream);
    }
  };
  events.left = [weak, stream](uint64_t number) {
    if (const auto state = weak.lock()) {
      state->OnClientLeft(stream, number);
    }
  };
  events.wrong = [weak, id = PathOf(uri_, stream)](const std::string& what) {
    if (const auto state = weak.lock()) {
      state->host_.Log(LogLevel::kWarning,
                       Format("stream '{}': {}; its connection is closed", id, what));
    }
  };
  StreamState& one = StateOf(stream);
  if (stream == Stream::kStdin) {
    one.input =
        std::make_shared<InputStream>(relay_, std::move(end), options_.account, std::move(events));
    return;
  }
  one.output =
      std::make_shared<OutputStream>(relay_, std::move(end), options_.account, std::move(events));
}

Status ProcessIo::State::TakeUpClientLocked(Stream stream, StreamFiles files) {
  if (!files) {
    std::vector<std::string> names = NamesOfClient(stream);
    DropLocked(std::move(names));
    return {};
  }
  StreamState& one = StateOf(stream);
  GANTRY_TRY(std::unique_ptr<StreamWire> wire, StreamWire::Open(std::move(files), RoleOf(stream)));
  one.connection = wire->number();
  ++one.arriving;
  relay_.Post([self = shared_from_this(), stream, wire = std::move(wire)]() mutable {
    self->Attach(stream, std::move(wire));
  });
  return {};
}

void ProcessIo::State::Attach(Stream stream, std::unique_ptr<StreamWire> wire) {
  std::shared_ptr<StreamPump> pump;
  {
    const MutexLock lock(mutex_);
    if (!closed_) {
      const StreamState& one = StateOf(stream);
      pump = one.output ? std::shared_ptr<StreamPump>(one.output) : one.input;
    }
  }
  if (!pump) {
    return;
  }
  pump->Attach(std::move(wire));
  Callbacks callbacks;
  {
    const MutexLock lock(mutex_);
    --StateOf(stream).arriving;
    EndInputWithClientLocked();
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

void ProcessIo::State::AwaitClients() {
  if (uri_.kind != StdioKind::kStreaming) {
    return;
  }
  std::vector<std::string> ids;
  std::vector<Stream> streams;
  for (const Stream stream : kStreams) {
    if (Streams(stream)) {
      ids.push_back(PathOf(uri_, stream));
      streams.push_back(stream);
    }
  }
  const std::weak_ptr<State> weak = weak_from_this();
  host_.AwaitStreams(
      std::move(ids),
      [weak, streams](size_t which, StreamConnection connection) {
        if (const auto state = weak.lock()) {
          state->OnArrived(streams.at(which), std::move(connection));
        }
      },
      [weak] {
        if (const auto state = weak.lock()) {
          const MutexLock lock(state->mutex_);
          state->looked_for_clients_ = true;
          state->EndInputWithClientLocked();
        }
      });
}

void ProcessIo::State::OnArrived(Stream stream, StreamConnection connection) {
  const MutexLock lock(mutex_);
  StreamState& one = StateOf(stream);
  if (closed_) {
    return;
  }
  if (connection.number == one.connection) {
    // An engine before this one stored it, and had no time to say so.
    host_.TookStream(connection.number);
    return;
  }
  if (!started_ && !ended_) {
    one.arrived = std::move(connection);
    return;
  }
  StoreClientLocked(stream, std::move(connection));
}

void ProcessIo::State::TakeClientsLocked() {
  for (const Stream stream : kStreams) {
    if (auto arrived = std::exchange(StateOf(stream).arrived, std::nullopt);
        arrived && (started_ || ended_)) {
      StoreClientLocked(stream, std::move(*arrived));
    }
  }
}

void ProcessIo::State::StoreClientLocked(Stream stream, StreamConnection connection) {
  const size_t i = IndexOf(stream);
  const uint64_t number = connection.number;
  std::vector<StoredFd> fds;
  const auto make = [&]() -> Result<StreamFiles> {
    GANTRY_TRY(StreamFiles files, StreamFiles::Make(std::move(connection)));
    GANTRY_CHECK_OK(AddCopy(fds, kConnectionNames[i], files.socket));
    GANTRY_CHECK_OK(AddCopy(fds, kWireNames[i], files.state));
    GANTRY_CHECK_OK(AddCopy(fds, kSentNames[i], files.sent));
    GANTRY_CHECK_OK(AddCopy(fds, kReceivedNames[i], files.received));
    return files;
  };
  Result<StreamFiles> files = make();
  if (!files) {
    host_.Log(LogLevel::kError, "a client's stream is not served: " + files.error().message);
    return;
  }
  for (const std::string& name : NamesOfClient(stream)) {
    stored_.insert(name);
  }
  StreamState& one = StateOf(stream);
  one.connection = number;
  ++one.arriving;
  host_.PutThen(std::move(fds), [weak = weak_from_this(), stream, number,
                                 files = std::move(*files)](const Status& stored) mutable {
    if (const auto state = weak.lock()) {
      state->OnStored(stream, std::move(files), number, stored);
    }
  });
}

void ProcessIo::State::OnStored(Stream stream, StreamFiles files, uint64_t number,
                                const Status& stored) {
  host_.TookStream(number);
  const MutexLock lock(mutex_);
  if (closed_) {
    // Close came first, and did not see these.
    host_.Drop(NamesOfClient(stream));
    return;
  }
  if (!stored) {
    // It goes on, and ends with this engine.
    host_.Log(LogLevel::kWarning,
              "a client's stream is lost if the engine ends: " + stored.error().message);
  }
  auto wire = StreamWire::Open(std::move(files), RoleOf(stream));
  if (!wire) {
    --StateOf(stream).arriving;
    host_.Log(LogLevel::kError, "a client's stream is not served: " + wire.error().message);
    return;
  }
  relay_.Post([self = shared_from_this(), stream, wire = std::move(*wire)]() mutable {
    self->Attach(stream, std::move(wire));
  });
}

/// CloseIO may overtake what the client has sent before it, on another connection.
void ProcessIo::State::EndInputWithClientLocked() {
  const StreamState& in = StateOf(Stream::kStdin);
  if (in.input && in.closing && looked_for_clients_ && in.arriving == 0 && !in.arrived) {
    relay_.Post([input = in.input] { input->EndWithConnection(); });
  }
}

void ProcessIo::State::OnPumpEnded(Stream stream) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return;
  }
  if (stream == Stream::kStdin) {
    DropLocked({kFeedName, kHeldNames[IndexOf(stream)]});
  } else {
    DropLocked({kHeldNames[IndexOf(stream)]});
  }
}

void ProcessIo::State::OnClientLeft(Stream stream, uint64_t number) {
  Callbacks callbacks;
  {
    const MutexLock lock(mutex_);
    StreamState& one = StateOf(stream);
    if (closed_ || one.connection != number) {
      return;
    }
    one.connection = 0;
    DropLocked(NamesOfClient(stream));
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

/// A client that is there reads the rest.
void ProcessIo::State::ReleasePumpsLocked() {
  for (const StreamState& one : streams_) {
    if (one.output) {
      relay_.Post([output = one.output] { output->Linger(); });
    }
    if (one.input) {
      relay_.Post([input = one.input] { input->Close(); });
    }
  }
}

void ProcessIo::State::AbandonPumps() {
  std::vector<std::shared_ptr<StreamPump>> pumps;
  {
    const MutexLock lock(mutex_);
    for (StreamState& one : streams_) {
      pumps.push_back(std::exchange(one.output, nullptr));
      pumps.push_back(std::exchange(one.input, nullptr));
    }
  }
  std::erase(pumps, nullptr);
  if (pumps.empty()) {
    return;
  }
  relay_.Do([&pumps] {
    for (const auto& pump : pumps) {
      pump->Abandon();
    }
  });
}

}  // namespace gantry::io
