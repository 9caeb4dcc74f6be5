// SPDX-License-Identifier: Apache-2.0
//
// What a keeper hands to the program that takes its place (same process, other
// program: reexec.h). Written in the link's encoding, so a newer program may add fields.
// Descriptors are numbers of the process's own table, and stay open over execve(2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/proto/proto_message.h>
#include <gantry/unique_fd.h>

#include "core/keeper/child_defaults.h"
#include "core/keeper/instance.h"
#include "core/keeper/place.h"
#include "core/keeper/waiting.h"
#include "core/link/messages.h"

namespace gantry::keeper::state {

/// Raised when an older program would misread it. A program takes its own and lower ones.
inline constexpr uint32_t kSchema = 1;

struct Listener {
  Place place;
  int32_t fd = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.place);
    field(2, self.fd);
  }
};

/// A frame of which a part has come.
struct Partial {
  /// Of its header, where that is not complete; else the whole header.
  std::string header;
  std::string payload;
  /// Bytes of the payload that came; more than are in `payload` where they are skipped.
  uint64_t payload_got = 0;
  bool skipped = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.header);
    field(2, self.payload);
    field(3, self.payload_got);
    field(4, self.skipped);
  }
};

struct Connection {
  uint64_t id = 0;
  int32_t fd = 0;
  Place place;
  /// CLOCK_MONOTONIC, nanoseconds.
  int64_t since_ns = 0;
  Partial in;
  uint32_t last_stream = 0;
  std::vector<Waiting> waiting;
  /// What the client has not taken yet.
  std::string out;
  bool spoke = false;
  bool engine_knows = false;
  /// FrontDoor::Streaming; and, where it is parked, the stream's id.
  uint32_t streaming = 0;
  std::string stream_id;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.fd);
    field(3, self.place);
    field(4, self.since_ns);
    field(5, self.in);
    field(6, self.last_stream);
    field(7, self.waiting);
    field(8, self.out);
    field(9, self.spoke);
    field(10, self.engine_knows);
    field(11, self.streaming);
    field(12, self.stream_id);
  }
};

struct FrontDoor {
  std::vector<Listener> listeners;
  std::vector<Connection> connections;
  uint64_t next_connection = 0;
  uint64_t next_order = 0;
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t replayed = 0;
  uint64_t dropped = 0;
  /// `with_engine` of each request is meant.
  bool knows_engine = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.listeners);
    field(2, self.connections);
    field(3, self.next_connection);
    field(4, self.next_order);
    field(5, self.requests);
    field(6, self.refused);
    field(7, self.replayed);
    field(8, self.dropped);
    field(9, self.knows_engine);
  }
};

struct Instances {
  std::vector<Instance> all;
  uint64_t next = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.all);
    field(2, self.next);
  }
};

struct Named {
  link::ProcessRef process;
  std::string name;

  void Each(this auto& self, auto&& field) {
    field(1, self.process);
    field(2, self.name);
  }
};

struct Exits {
  /// Their ends matter.
  std::vector<link::ProcessRef> watched;
  /// Of these, and of those whose ends are in `kept`.
  std::vector<Named> named;
  std::vector<link::Exit> kept;
  std::vector<link::Exit> orphans;
  std::vector<link::EndedName> ended_names;

  void Each(this auto& self, auto&& field) {
    field(1, self.watched);
    field(2, self.named);
    field(3, self.kept);
    field(4, self.orphans);
    field(5, self.ended_names);
  }
};

struct Stored {
  std::string name;
  int32_t fd = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.fd);
  }
};

/// The engine in charge, with what it owns by number.
struct Engine {
  std::string path;
  link::ProcessRef process;
  int32_t pidfd = 0;
  int32_t link = 0;
  int64_t answers_within_ms = 0;
  bool keep_hanging = false;
  /// CLOCK_MONOTONIC, nanoseconds.
  int64_t in_charge_since_ns = 0;
  bool takes_streams = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.path);
    field(2, self.process);
    field(3, self.pidfd);
    field(4, self.link);
    field(5, self.answers_within_ms);
    field(6, self.keep_hanging);
    field(7, self.in_charge_since_ns);
    field(8, self.takes_streams);
  }
};

/// Of the supervisor what outlives engines.
struct Supervisor {
  /// Of the engine's program, and of that which it goes back to.
  std::string path;
  std::string fallback_path;
  /// Only where it is handed over. Absent: none runs; one is to be started where `ever`.
  std::optional<Engine> engine;
  std::optional<int32_t> previous_wait_status;
  uint64_t starts = 0;
  /// So many engines were found hanging.
  uint64_t hangs = 0;
  /// Counts the engines that were in charge.
  uint64_t generation = 0;
  /// Starts in a row that led to nothing.
  int32_t failures = 0;
  /// The last one that ended did.
  bool said_hello = false;
  /// One was started.
  bool ever = false;
  /// The path that the last upgrade was to, where it was taken back; and how that engine ended.
  std::string fell_back_from;
  int32_t fell_back_wait_status = 0;
  /// How often there was none in charge after one that was, and for how long in all.
  uint64_t gaps = 0;
  int64_t gap_ns = 0;
  /// There is none in charge since then, by the steady clock; 0: one is, or none was yet.
  int64_t left_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.path);
    field(2, self.fallback_path);
    field(3, self.engine);
    field(4, self.previous_wait_status);
    field(5, self.starts);
    field(6, self.hangs);
    field(7, self.generation);
    field(8, self.failures);
    field(9, self.said_hello);
    field(10, self.ever);
    field(11, self.fell_back_from);
    field(12, self.fell_back_wait_status);
    field(13, self.gaps);
    field(14, self.gap_ns);
    field(15, self.left_at_ns);
  }
};

/// Shim and gantryctl, at the control socket.
struct Control {
  int32_t listener = 0;
  std::vector<int32_t> clients;
  /// The one that asked for the change, and waits for its answer.
  std::optional<int32_t> asker;

  void Each(this auto& self, auto&& field) {
    field(1, self.listener);
    field(2, self.clients);
    field(3, self.asker);
  }
};

/// Who has started this process and wants to know how it is.
struct ServiceManager {
  /// Empty: nobody.
  std::string socket;
  /// To be told of a turning loop within so many microseconds; 0: need not be.
  int64_t watchdog_us = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.socket);
    field(2, self.watchdog_us);
  }
};

struct Keeper {
  uint32_t schema = 0;
  std::string run_dir;
  /// Holds the lock on keeper.alive.
  int32_t alive = 0;
  int64_t started_at_ns = 0;
  ChildDefaults child_defaults;
  FrontDoor front_door;
  Instances instances;
  Exits exits;
  std::vector<Stored> stored;
  Supervisor supervisor;
  Control control;
  /// So many times one program took another's place.
  uint64_t upgrades = 0;
  ServiceManager service_manager;
  /// Addresses of the groups that the engine in charge is taking up.
  std::vector<std::string> recovering;
  /// SIGTERM came, and is to be carried out once there is nothing to guard.
  bool asked_to_end = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.schema);
    field(2, self.run_dir);
    field(3, self.alive);
    field(4, self.started_at_ns);
    field(5, self.child_defaults);
    field(6, self.front_door);
    field(7, self.instances);
    field(8, self.exits);
    field(9, self.stored);
    field(10, self.supervisor);
    field(11, self.control);
    field(12, self.upgrades);
    field(13, self.service_manager);
    field(14, self.recovering);
    field(15, self.asked_to_end);
  }
};

/// All descriptors in it.
std::vector<int> DescriptorsOf(const Keeper& keeper);

/// Bytes in a memfd, as they are read back. `Read` refuses what is no such state, or of
/// a later schema. Errors: kInvalidArgument, kFailedPrecondition; the errno's.
Result<UniqueFd> Write(const Keeper& keeper);
Result<Keeper> Read(int memfd);

}  // namespace gantry::keeper::state
