// SPDX-License-Identifier: Apache-2.0
//
// What the streams of a process need of the engine around them. Written down as
// an interface so that core/io knows neither the keeper nor the record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "core/io/stream_wire.h"
#include "core/os/fifo.h"

namespace gantry::io {

/// A descriptor and the name that it is kept under. Names are unique within one
/// process's streams, at most 16 characters of [a-z-]; the engine puts the
/// container's and the exec's id before them.
struct StoredFd {
  std::string name;
  UniqueFd fd;
};

/// A fifo and the end of it that is to be held.
struct HeldFifo {
  std::string name;
  /// From `os::OpenName`.
  UniqueFd fifo;
  os::PipeEnd end;
};

/// Implemented by the engine, once per process (init or exec). It must outlive
/// the `ProcessIo` that uses it.
/// Thread: any; `Drop`, `ConsoleSignal` and `Log` also from the IO thread, so they must
/// not block.
class StdioHost {
 public:
  StdioHost(const StdioHost&) = delete;
  StdioHost& operator=(const StdioHost&) = delete;
  virtual ~StdioHost() = default;

  /// Keeps descriptors where they outlive the engine. When this returns they
  /// are safe. Again with the same name: replaces.
  /// Blocks: until the keeper has them. Thread: workers.
  virtual Status Put(std::vector<StoredFd> fds) = 0;
  /// Opens ends of fifos and keeps them where they outlive the engine, in one go:
  /// no other side sees them open and closed again when the engine is killed.
  /// Write ends also where nobody reads yet. After an error some may be held.
  /// Blocks: until the keeper has them. Thread: workers.
  virtual Status Hold(std::vector<HeldFifo> fifos) = 0;
  /// As `Put`, without waiting: `done` runs on the engine's loop once they are safe, or are not.
  /// Thread: any.
  virtual void PutThen(std::vector<StoredFd> fds, std::move_only_function<void(Status)> done) = 0;
  /// Lets descriptors go. A reader sees the end of its stream only when the
  /// last copy is closed, so this must not be put off. Unknown names: nothing.
  virtual void Drop(std::vector<std::string> names) = 0;

  /// Starts a process; `request.tag` is set. Thread: workers.
  virtual Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) = 0;
  /// What an engine before this one spawned under `tag`; null: none, or ended.
  virtual std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) = 0;

  /// `arrived` runs on the engine's loop with each connection of a client for one of these
  /// streams, and its place among `ids`: those that wait, then `looked`, then those that come,
  /// until `ForgetStreams`. The keeper looks after a connection until `TookStream`. Thread: any.
  virtual void AwaitStreams(std::vector<std::string> ids,
                            std::function<void(size_t, StreamConnection)> arrived,
                            std::function<void()> looked) = 0;
  /// Again, or without `AwaitStreams`: harmless. Thread: any.
  virtual void ForgetStreams() = 0;
  /// That connection is in the store, or is of no use to anybody. Again: harmless. Thread: any.
  virtual void TookStream(uint64_t number) = 0;

  /// The foreground processes of the foreign console are to get this signal.
  virtual void ConsoleSignal(uint32_t signal) = 0;

  virtual void Log(LogLevel level, std::string_view message) = 0;

 protected:
  StdioHost() = default;
};

}  // namespace gantry::io
