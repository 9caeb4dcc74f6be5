// SPDX-License-Identifier: Apache-2.0
//
// What is in a frame of the control connection: a request, its answer, an event, or one of the two
// messages that open the connection. See proto/gantry/guest/agent.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gantry/error.h>

namespace gantry::vmm::protocol {

/// The ports of the host that the guest dials, by AF_VSOCK or hybrid vsock.
inline constexpr uint32_t kControlPort = 1025;
inline constexpr uint32_t kStreamPort = 1026;

/// Versions that this program speaks. A version is what both sides have to agree about; fields and
/// methods that are new, and do without, are none.
inline constexpr uint32_t kFirstVersion = 1;
inline constexpr uint32_t kLastVersion = 1;

/// Numbers are never reused.
enum class Kind : uint32_t {
  kNone = 0,
  /// Of the guest, first, and the host's word on it. They belong to no call.
  kHello = 1,
  kWelcome = 2,
  /// Requests and their answers.
  kSetUp = 10,
  kAttach = 11,
  kDetach = 12,
  kCreateContainer = 13,
  kCreateExec = 14,
  kStart = 15,
  kSignal = 16,
  kPause = 17,
  kResume = 18,
  kUpdate = 19,
  kStats = 20,
  kPids = 21,
  kResize = 22,
  kDelete = 23,
  kOnline = 24,
  kList = 25,
  kShutdown = 26,
  kForward = 27,
  /// Events, which nobody has asked for.
  kExited = 100,
  kOutOfMemory = 101,
  kLog = 102,
};

/// "CreateContainer"; "kind 77" of what is not known.
std::string NameOf(Kind kind);

/// Of requests whose answer says no more than that it was done.
struct Nothing {
  void Each(this auto&, auto&&) {}
};

struct Failure {
  int32_t code = 0;
  int32_t sys_errno = 0;
  std::string message{};

  void Each(this auto& self, auto&& field) {
    field(1, self.code);
    field(2, self.sys_errno);
    field(3, self.message);
  }
};

struct Envelope {
  /// Chosen by the host, from 1 on, never again in one connection; 0: no call.
  uint64_t call = 0;
  uint32_t kind = 0;
  std::string body{};
  /// Of an answer: it has failed.
  std::optional<Failure> failure{};

  void Each(this auto& self, auto&& field) {
    field(1, self.call);
    field(2, self.kind);
    field(3, self.body);
    field(4, self.failure);
  }
};

/// An error for the wire, its text cut to 4 KiB; and what the wire says, whatever that is: a code
/// that is none becomes kInternal, a text that is none says so.
Failure ToFailure(const Error& error);
Error ToError(const Failure& failure);

}  // namespace gantry::vmm::protocol
