// SPDX-License-Identifier: Apache-2.0
//
// What shim and gantryctl ask the keeper, on its control socket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/message_type.h"
#include "core/link/rlimit.h"

namespace gantry::link {

/// shim -> keeper: containerd starts an instance (a container or a sandbox).
/// Answer: Announced. An instance of the same containerd, namespace and id that
/// has no living process is replaced; with one the answer is Failed, kAlreadyExists.
struct Announce {
  static constexpr Type kType = Type::kAnnounce;

  std::string id;
  std::string ns;
  /// Absolute path of the bundle.
  std::string bundle;
  /// Instances of one group share a socket. Empty: a group of its own, named `id`.
  std::string group;
  /// containerd's gRPC and ttrpc sockets, as it gave them.
  std::string grpc_address;
  std::string ttrpc_address;
  /// containerd's own binary, for `publish`.
  std::string containerd_binary;
  bool debug = false;
  /// From the name the shim was called by: "wasm" for
  /// containerd-shim-gantry-wasm-v1, "" for containerd-shim-gantry-v1.
  std::string handler;
  /// The runtime options (an Any) that came on the shim's stdin, if any.
  std::string options_type_url;
  std::string options;
  /// Which form the shim was started in: 0 plain (containerd 1.6 .. 2.2), 3
  /// BootstrapParams (2.3 and later).
  uint32_t bootstrap_version = 0;
  /// BootstrapParams' containerd_version, else "".
  std::string containerd_version;
  /// The shim's own limits, which it has from containerd: what is started for the instance
  /// gets them, as a child of containerd's would. Empty: the shim does not tell.
  std::vector<Rlimit> rlimits;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.ns);
    field(3, self.bundle);
    field(4, self.group);
    field(5, self.grpc_address);
    field(6, self.ttrpc_address);
    field(7, self.containerd_binary);
    field(8, self.debug);
    field(9, self.handler);
    field(10, self.options_type_url);
    field(11, self.options);
    field(12, self.bootstrap_version);
    field(13, self.containerd_version);
    field(14, self.rlimits);
  }
};

/// keeper -> shim: the instance's socket is listening.
struct Announced {
  static constexpr Type kType = Type::kAnnounced;

  /// "unix:///run/gantry/s/0123...".
  std::string address;

  void Each(this auto& self, auto&& field) { field(1, self.address); }
};

/// shim -> keeper: end an instance, whatever state it is in. Answered within
/// 4 s, with the engine or without it. Answer: Deleted.
struct Delete {
  static constexpr Type kType = Type::kDelete;

  std::string id;
  std::string ns;
  std::string bundle;
  std::string grpc_address;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.ns);
    field(3, self.bundle);
    field(4, self.grpc_address);
  }
};

/// keeper -> shim: how the instance's init process ended.
struct Deleted {
  static constexpr Type kType = Type::kDeleted;

  /// `kNoPid` where there never was a process.
  uint32_t pid = 0;
  /// Exit code, or 128 + signal.
  uint32_t status = 0;
  /// Nanoseconds since 1970.
  int64_t exited_at_ns = 0;
  /// The keeper had such an instance. Otherwise the values are made up (137, now)
  /// and the shim looks into the bundle's record for what is left to kill.
  bool known = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.status);
    field(3, self.exited_at_ns);
    field(4, self.known);
  }
};

/// gantryctl, and the engine for its metrics -> keeper: what the keeper holds. Answer:
/// KeeperStatus.
struct Query {
  static constexpr Type kType = Type::kQuery;

  /// Without the instances, only how many there are.
  bool brief = false;

  void Each(this auto& self, auto&& field) { field(1, self.brief); }
};

/// gantryctl -> keeper: replace the engine by `engine` (empty: the same path).
/// The new one is started beside the old, which ends when the new one has said
/// Hello. Answer: Upgraded once the new engine is in charge, Failed
/// (kFailedPrecondition) when it ended or did not say Hello in time; then the old one goes on.
struct Upgrade {
  static constexpr Type kType = Type::kUpgrade;

  std::string engine;
  /// The new one stays, even where it crashes at once.
  bool no_fallback = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.engine);
    field(2, self.no_fallback);
  }
};

/// keeper -> gantryctl: the new engine is in charge.
struct Upgraded {
  static constexpr Type kType = Type::kUpgraded;

  int32_t engine_pid = 0;
  /// The program to which the keeper goes back where the new one crashes within the next
  /// seconds; "" where it is the same, or is not wanted.
  std::string fallback{};

  void Each(this auto& self, auto&& field) {
    field(1, self.engine_pid);
    field(2, self.fallback);
  }
};

/// gantryctl -> keeper: become the program `keeper` (an absolute path). Nothing ends, and no
/// connection closes. Answer: KeeperUpgraded, by the new program; Failed
/// (kFailedPrecondition) where the old one stays.
struct UpgradeKeeper {
  static constexpr Type kType = Type::kUpgradeKeeper;

  std::string keeper;

  void Each(this auto& self, auto&& field) { field(1, self.keeper); }
};

/// keeper -> gantryctl: the new program runs, and holds what the old one held.
struct KeeperUpgraded {
  static constexpr Type kType = Type::kKeeperUpgraded;

  int32_t keeper_pid = 0;

  void Each(this auto& self, auto&& field) { field(1, self.keeper_pid); }
};

/// keeper -> anyone: why there is no other answer.
struct Failed {
  static constexpr Type kType = Type::kFailed;

  /// A gantry::Code.
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.code);
    field(2, self.message);
  }
};

}  // namespace gantry::link
