// SPDX-License-Identifier: Apache-2.0
//
// containerd's requests on their way to the engine, and its answers.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/message_type.h"

namespace gantry::link {

/// keeper -> engine: one unary ttrpc request. Kept by the keeper until its
/// Response was handed over; after an engine restart it comes again with `replay`.
struct Request {
  static constexpr Type kType = Type::kRequest;

  /// Never used twice by one keeper.
  uint64_t connection = 0;
  uint32_t stream = 0;
  /// The socket it came on, as InstanceAdded::address, and what that socket stands
  /// for. `ns` is the truth about the namespace. Empty `ns`: the operator's socket
  /// ($GANTRY_RUN_DIR/gantry.sock).
  std::string address;
  std::string ns;
  std::string grpc_address;
  /// The ttrpc Request message, undecoded.
  std::string payload;
  /// An earlier engine may have begun it.
  bool replay = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.connection);
    field(2, self.stream);
    field(3, self.address);
    field(4, self.ns);
    field(5, self.grpc_address);
    field(6, self.payload);
    field(7, self.replay);
  }
};

/// engine -> keeper: the answer to a Request; ignored when there is none such
/// (the connection was closed meanwhile).
struct Response {
  static constexpr Type kType = Type::kResponse;

  uint64_t connection = 0;
  uint32_t stream = 0;
  /// The ttrpc Response message, at most 4 MiB.
  std::string payload;

  void Each(this auto& self, auto&& field) {
    field(1, self.connection);
    field(2, self.stream);
    field(3, self.payload);
  }
};

/// keeper -> engine: nobody waits any longer for answers on this connection.
/// Sent only for connections of which the engine saw a Request.
struct ConnectionClosed {
  static constexpr Type kType = Type::kConnectionClosed;

  uint64_t connection = 0;

  void Each(this auto& self, auto&& field) { field(1, self.connection); }
};

/// keeper -> engine, with a second descriptor of the connection: a client has opened a stream of
/// `containerd.services.streaming.v1.Streaming` and said which, and the keeper has answered that;
/// the rest of what goes over the connection is the engine's. Comes again to the next engine until
/// StreamTaken. ConnectionClosed: it was closed before that. Only to an engine whose Hello says
/// `takes_streams`.
struct StreamOpened {
  static constexpr Type kType = Type::kStreamOpened;

  uint64_t connection = 0;
  /// The socket it came on, as InstanceAdded::address.
  std::string address;
  /// Of ttrpc, on that connection.
  uint32_t stream = 0;
  /// As containerd writes it into the stdio of a process: `streaming_id`.
  std::string id;

  void Each(this auto& self, auto&& field) {
    field(1, self.connection);
    field(2, self.address);
    field(3, self.stream);
    field(4, self.id);
  }
};

/// engine -> keeper: that stream is stored, or ended. The keeper lets go of the connection.
struct StreamTaken {
  static constexpr Type kType = Type::kStreamTaken;

  uint64_t connection = 0;

  void Each(this auto& self, auto&& field) { field(1, self.connection); }
};

/// keeper -> engine: containerd asks to end the instance. Answer: DeleteDone
/// within 3 s, else the keeper kills by the last resort of the last Protect. Not sent for
/// forgotten instances.
struct DeleteCall {
  static constexpr Type kType = Type::kDeleteCall;

  uint64_t tag = 0;
  uint64_t instance = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.instance);
  }
};

/// engine -> keeper: the instance has ended and its processes are gone. The
/// keeper answers containerd and sends InstanceRemoved.
struct DeleteDone {
  static constexpr Type kType = Type::kDeleteDone;

  uint64_t tag = 0;
  /// `kNoPid` where it never had a process.
  uint32_t pid = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;
  /// Not 0 (a gantry::Code): the engine could not; the keeper does what it can.
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.pid);
    field(3, self.status);
    field(4, self.exited_at_ns);
    field(5, self.code);
    field(6, self.message);
  }
};

}  // namespace gantry::link
