// SPDX-License-Identifier: Apache-2.0
//
// A step of a container's or sandbox's life, and how it lies in the ring.
//
// The ring is one file of `kRingBytes`: slots of `kSlotBytes`, the first of which says what the
// file is. Step n lies in slot 1 + n % kSlots and replaces the one that was there. A slot has two
// parts, written by one `pwrite` each, or by one where the step has ended when it is told:
//
//     u64 number, i64 begun (ns since the epoch), u32 checksum, u8 kind, u8 flags,
//     u8 length of namespace, id, exec and what, u16 0; these four texts
//     i64 took (ns), u32 waited (us), u32 checksum, u8 code, u8 length of detail, u16 0; detail
//
// All little endian. The second part's checksum covers the number, too, so what an older step has
// left there is not taken for this one's end. A part whose checksum is wrong was torn, or never
// written: without the first there is no step, without the second it has no end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::trace {

/// What an engine's first step is called: steps before it that are open ended with another.
inline constexpr char kComeUp[] = "come up";

/// In the run directory.
inline constexpr char kFileName[] = "trace.ring";
inline constexpr size_t kRingBytes = size_t{2} << 20;
inline constexpr size_t kSlotBytes = 256;
inline constexpr uint64_t kSlots = kRingBytes / kSlotBytes - 1;

/// What a step is one of. The numbers are on disk.
enum class Kind : uint8_t {
  kCall = 1,      ///< A call of containerd, from its arrival to its answer.
  kBackend = 2,   ///< A call into a backend.
  kEvent = 3,     ///< From when an event is queued until containerd has taken it.
  kExit = 4,      ///< From when an end is heard of until who waits for it is told.
  kRecovery = 5,  ///< What an engine takes up that another has left.
  kEngine = 6,    ///< The engine itself; without an id.
  kKeeper = 7,    ///< What the keeper tells of an instance.
};

/// "call", "backend", ...; "?" for a number that is none.
std::string_view KindName(Kind kind);

/// Whose step it is. Empty: nobody's, or of no exec.
struct Subject {
  std::string_view ns;
  std::string_view id;
  std::string_view exec;
};

/// How it ended.
struct End {
  int64_t took_ns = 0;
  /// Of that, until a worker was free.
  int64_t waited_ns = 0;
  Code code = Code::kOk;
  /// An error's message, or what else is to be known; cut to what the slot has left.
  std::string detail;
};

/// As it is read.
struct Step {
  uint64_t number = 0;
  /// Since the epoch.
  int64_t begun_ns = 0;
  Kind kind = Kind::kCall;
  /// An engine before this one may have begun it.
  bool again = false;
  std::string ns;
  std::string id;
  std::string exec;
  std::string what;
  /// None: it is under way, or its engine ended before it did.
  std::optional<End> end;
};

/// The texts are cut to so much, so that a slot holds all of them.
inline constexpr size_t kMaxNs = 36;
inline constexpr size_t kMaxId = 76;
inline constexpr size_t kMaxExec = 64;
inline constexpr size_t kMaxWhat = 24;

/// The first part. Of `step` no end is looked at.
std::string EncodeBegin(uint64_t number, int64_t begun_ns, Kind kind, bool again,
                        const Subject& subject, std::string_view what);
/// The second part, to be written `begin_bytes` into the slot.
std::string EncodeEnd(uint64_t number, size_t begin_bytes, const End& end);

/// What a slot holds. None: nothing, or nothing whole.
std::optional<Step> DecodeSlot(std::string_view slot);

/// The first slot. Whatever else it is: the file is no ring of this kind.
std::string EncodeHead();

}  // namespace gantry::trace
