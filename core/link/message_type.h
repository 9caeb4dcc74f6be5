// SPDX-License-Identifier: Apache-2.0
//
// Which messages there are, and the limits that both sides know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry::link {

/// What Hello and Welcome carry. Raised when one side could misread the other.
inline constexpr uint32_t kProtocolVersion = 1;
/// Where an engine finds its end of the link.
inline constexpr int kEngineLinkFd = 3;
/// Set to 1 for an engine that is started beside another one.
inline constexpr char kStandbyVariable[] = "GANTRY_STANDBY";
/// A stored descriptor's name is at most this long.
inline constexpr size_t kMaxStoredName = 256;
/// So many descriptors the keeper stores; a Put beyond it is refused.
inline constexpr size_t kMaxStoredDescriptors = 16384;
/// The pid in a Deleted that names no process (containerd's -1).
inline constexpr uint32_t kNoPid = 0xffffffff;

enum class Type : uint16_t {
  // Control.
  kAnnounce = 1,
  kAnnounced = 2,
  kDelete = 3,
  kDeleted = 4,
  kQuery = 5,
  kKeeperStatus = 6,
  kUpgrade = 7,
  kUpgraded = 8,
  kUpgradeKeeper = 9,
  kKeeperUpgraded = 10,
  kFailed = 15,
  // Engine link: hand-over.
  kHello = 20,
  kWelcome = 21,
  kInstanceAdded = 22,
  kInstanceRemoved = 23,
  kSnapshotEnd = 24,
  kStoredNames = 25,
  kNamedSpawn = 26,
  kAddMember = 27,
  kMemberAdded = 28,
  kWatched = 29,
  // Engine link: containerd's requests.
  kRequest = 30,
  kResponse = 31,
  kConnectionClosed = 32,
  kDeleteCall = 33,
  kDeleteDone = 34,
  // Engine link: what it takes up.
  kRecovering = 35,
  // Engine link: clients that stream.
  kStreamOpened = 36,
  kStreamTaken = 37,
  // Engine link: processes.
  kSpawn = 40,
  kSpawned = 41,
  kAdopt = 42,
  kExit = 43,
  kExitAck = 44,
  kAdopted = 45,
  kEndedNames = 46,
  kForgetEnded = 47,
  // Engine link: descriptor store.
  kPut = 50,
  kPutDone = 51,
  kTake = 52,
  kTaken = 53,
  kDrop = 54,
  // Engine link: last resort.
  kProtect = 60,
  kForget = 61,
  // Engine link: before Hello, of an engine that is to take another's place.
  kInquire = 65,
  kInventory = 66,
  kRefuse = 67,
  // Engine link: heartbeat.
  kPing = 70,
  kPong = 71,
};

}  // namespace gantry::link
