// SPDX-License-Identifier: Apache-2.0
//
// Containerd's side of the keeper: the listening sockets, the connections, and the
// requests that are not answered yet.
//
// Promises:
// - A connection is closed only when its client closed it. (Closing one means death
//   of the container to containerd.) The one exception: with all places taken, the
//   oldest connection that never sent a byte goes.
// - A request that was accepted gets one answer: the engine's, be it a later
//   engine's; or DEADLINE_EXCEEDED when the client's time ran out while there
//   was no engine.
// - Nothing grows without end: see `Limits`. Beyond a limit a new request is
//   answered with RESOURCE_EXHAUSTED, and those accepted before are unharmed.
// - A connection on which a client opens a stream of containerd's Streaming service
//   is not read any further. It is kept for the engine until that has taken it, and
//   closed only when its client has closed it; or when it has not said which stream
//   it means; or for want of places, when it has waited for very long.
// - What crashes engines is not given for ever. A request that an engine had when it
//   crashed has one death more. With two it is given to the next one last and alone, when
//   that one has taken up what there is; with three, or two where there was no other, it is
//   answered with INTERNAL. (Calls that only wait are not counted: one of each container
//   is always there.)
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/keeper/frames.h"
#include "core/keeper/place.h"
#include "core/keeper/state.h"
#include "core/keeper/waiting.h"
#include "core/link/channel.h"

namespace gantry::keeper {

struct Limits {
  size_t connections = 4096;
  /// Of one place, so that no sandbox takes what the others need. Past it the next one
  /// waits until another one there has closed.
  size_t connections_per_place = 1024;
  size_t request_bytes = 64U << 20;
  size_t request_bytes_per_place = 24U << 20;
  size_t request_bytes_per_connection = 16U << 20;
  size_t requests_per_connection = 4096;
  /// Past it no more is read from a client that does not read its answers.
  size_t unread_bytes = 1U << 20;
  /// Past it, in one place, an answer is replaced by a short error.
  size_t unread_bytes_max = 16U << 20;
  /// A silent connection younger than this is not closed for want of places.
  std::chrono::milliseconds silence = std::chrono::seconds(10);
  /// Streams of one place that no process has asked for, and how long one waits before it may
  /// have to go for another.
  size_t parked_per_place = 512;
  size_t parked = 2048;
  std::chrono::milliseconds parked_patience = std::chrono::minutes(10);
  /// A request that may crash engines is alone with one for so long.
  std::chrono::milliseconds trial = std::chrono::seconds(10);
};

/// Thread: the keeper's only one. Blocks: never.
class FrontDoor {
 public:
  struct Counters {
    uint64_t requests = 0;
    uint64_t refused = 0;
    uint64_t replayed = 0;
    /// Since engines crashed of them.
    uint64_t dropped = 0;
  };

  /// `on_parked` is called when a request came and there is no engine, `on_closed` when a
  /// connection has closed, in the midst of whatever closes it.
  FrontDoor(async::Loop& loop, Limits limits, std::function<void()> on_parked,
            std::function<void()> on_closed);
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;
  ~FrontDoor();

  /// Listens at `place.path` (a stale socket there is replaced) until `Close`.
  Status Listen(Place place);
  /// Stops listening and removes the socket file. Connections stay.
  void Close(const std::string& path);

  /// From now on requests go to `engine`; those waiting go first, in their order, but for
  /// those that may crash it, which go one by one, and where it `tells_recovery` not before
  /// `Recovered`.
  void EngineUp(link::Channel& engine, bool tells_recovery, bool takes_streams);
  void EngineDown();
  /// After it: the engine had crashed. `recovering`: it was taking up what there was, and may
  /// have crashed of that.
  void EngineCrashed(bool recovering);
  /// The engine in charge has taken up what there was. Again: nothing.
  void Recovered();
  /// Nothing has crashed for a while.
  void Forgive();
  /// Calls on that socket get `why` as their answer, but those that only wait: they go on
  /// waiting. `why` empty: no longer.
  void LeaveOut(const std::string& path, const std::string& why);
  /// The engine has that stream's connection.
  void Taken(const link::StreamTaken& taken);
  /// The engine's answer. One that nobody waits for is dropped.
  void Answer(const link::Response& response);

  /// For the next program, which must have the descriptors.
  state::FrontDoor Save() const;
  /// Only into an empty one. `engine`: null where there is none; it is not given again
  /// what it was given. Owner: takes the descriptors.
  void Restore(const state::FrontDoor& all, link::Channel* engine, bool takes_streams);

  /// Nobody is connected there.
  bool IsIdle(const std::string& path) const;

  const Counters& counters() const { return counters_; }

  size_t connections() const { return connections_.size(); }

  size_t listeners() const { return listeners_.size(); }

  size_t requests_waiting() const { return requests_waiting_; }

  size_t request_bytes() const { return request_bytes_; }

 private:
  using TimePoint = async::TimePoint;

  struct Listener {
    std::shared_ptr<const Place> place;
    UniqueFd fd;
    async::WatchId watch{};
  };

  /// What a connection is for. (state.h has the numbers.)
  enum class Streaming : uint32_t {
    /// No whole frame has come.
    kUnknown = 0,
    /// Calls.
    kNo = 1,
    /// A stream, and it has not been said which.
    kOpening = 2,
    kParked = 3,
  };

  struct Connection {
    uint64_t id = 0;
    std::shared_ptr<const Place> place;
    UniqueFd fd;
    async::WatchId watch{};
    TimePoint since;
    FrameSplitter in;
    size_t held = 0;
    uint32_t last_stream = 0;
    std::map<uint32_t, Waiting> waiting;
    size_t waiting_bytes = 0;
    std::deque<std::string> out;
    size_t out_sent = 0;
    size_t out_bytes = 0;
    bool spoke = false;
    bool engine_knows = false;
    bool closed = false;
    Streaming streaming = Streaming::kUnknown;
    std::string stream_id;
    async::TimerId init_timer{};
  };

  /// What a waiting request costs besides its payload.
  static constexpr size_t kRequestOverhead = 128;

  void Accept(const std::string& path);
  void Enter(Place place, UniqueFd listening);
  Connection& Enter(std::shared_ptr<Connection> connection);
  void AddConnection(UniqueFd fd, std::shared_ptr<const Place> place);
  void RestoreConnection(const state::Connection& one, bool knows_engine);
  bool MakeRoom();
  void PauseAccepting();
  void ResumeAccepting();

  void OnReady(Connection& connection, uint32_t events);
  bool ReadOnce(Connection& connection);
  void CountHeld(Connection& connection);
  void AddBytes(const Connection& connection, size_t bytes);
  void DropBytes(const Connection& connection, size_t bytes);
  void OnFrame(Connection& connection, Frame frame);
  /// The code and text with which a request is refused, if it is.
  static Status CheckStream(Connection& connection, const Frame& frame);
  Status CheckRoom(const Connection& connection, const Frame& frame) const;
  void AcceptRequest(Connection& connection, Frame frame);
  void Give(Connection& connection, uint32_t stream, Waiting& waiting);
  void NextTrial();
  void RefuseWaiting(const std::shared_ptr<const Place>& place);
  /// Then it has been refused.
  bool IsLeftOut(Connection& connection, const Frame& frame);
  /// Its place is gone: an engine may say so to those that wait.
  void TakeIn(const Place& place);
  void Finish(Connection& connection, uint32_t stream);
  void Refuse(Connection& connection, uint32_t stream, const Error& error);
  void Write(Connection& connection, uint32_t stream, std::string_view response);
  void Flush(Connection& connection);
  void Rearm(Connection& connection);
  void CloseConnection(Connection& connection);

  // Streams (front_door_streams.cc).
  void OnStreamFrame(Connection& connection, const Frame& frame);
  Status OpenStream(Connection& connection, const Frame& frame);
  Status Park(Connection& connection, const Frame& frame);
  Status MakeRoomToPark(const Connection& connection);
  void GiveStream(Connection& connection);
  void GiveStreams();
  void WatchParked(Connection& connection, uint32_t events);
  void LimitOpening(Connection& connection);
  void Unpark(Connection& connection);
  void HangUp(Connection& connection);

  void ArmExpiry(TimePoint deadline);
  void Expire();

  async::Loop& loop_;
  Limits limits_;
  std::function<void()> on_parked_;
  std::function<void()> on_closed_;
  link::Channel* engine_ = nullptr;
  /// The engine in charge does, or would have: that before it did.
  bool takes_streams_ = true;
  size_t parked_ = 0;
  std::map<std::string, Listener> listeners_;
  /// By id, so by age.
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  uint64_t next_connection_ = 1;
  uint64_t next_order_ = 1;
  size_t requests_waiting_ = 0;
  /// Payloads of waiting requests and of unfinished frames.
  size_t request_bytes_ = 0;
  bool accepting_ = true;
  async::TimerId accept_timer_{};
  async::TimerId expiry_timer_{};
  TimePoint expiry_ = TimePoint::max();
  uint64_t next_given_ = 1;
  /// Those that may crash the engine in charge, by connection and stream; and that which it has.
  std::deque<std::pair<uint64_t, uint32_t>> trials_;
  std::pair<uint64_t, uint32_t> trial_{};
  async::TimerId trial_timer_{};
  Counters counters_;
  std::vector<char> buffer_;
};

}  // namespace gantry::keeper
