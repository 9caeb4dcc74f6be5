// SPDX-License-Identifier: Apache-2.0
//
// Every message that shim, gantryctl, keeper and engine exchange, in both
// directions. How they are framed on a socket is in channel.h, how they become
// bytes in gantry/toolkit/proto/proto_message.h.
//
// Two conversations use them.
//
// Control, $GANTRY_RUN_DIR/keeper.sock: a client connects, sends one of
// Announce, Delete, Query, Upgrade, and reads its answer: Announced, Deleted,
// KeeperStatus, Upgraded, or Failed. More questions may follow on the connection.
//
// Engine link, a socket pair that the engine finds as descriptor 3:
//
//     engine                                 keeper
//     Hello ────────────────────────────────▶
//      ◀────────────────────────────────────  Welcome
//      ◀────────────────────────────────────  InstanceAdded, Protect for each instance
//      ◀────────────────────────────────────  StoredNames (in several parts)
//      ◀────────────────────────────────────  NamedSpawn, each that still runs or is unacknowledged
//      ◀────────────────────────────────────  EndedNames (in several parts)
//      ◀────────────────────────────────────  Exit, each that was not acknowledged
//      ◀────────────────────────────────────  SnapshotEnd
//      ◀────────────────────────────────────  Request with `replay`, those unanswered
//      ◀────────────────────────────────────  DeleteCall, those unanswered
//      ◀────────────────────────────────────  StreamOpened, those not taken
//     live traffic in both directions ◀─────▶
//
// The keeper handles the engine's messages in the order they were sent and
// answers each tagged one exactly once. So a Protect sent before a Spawn is in
// force when the process is born.
//
// Of an engine that is started beside another (kStandbyVariable), Inquire, answered by
// Inventory, may come before Hello, and Refuse in its place.
//
// Descriptors travel with a message in the order that its comment says.
// Numbers of messages and fields are never used again for something else: an
// older keeper serves a newer engine.
#pragma once

#include "core/link/control_messages.h"      // IWYU pragma: export
#include "core/link/handover_messages.h"     // IWYU pragma: export
#include "core/link/heartbeat_messages.h"    // IWYU pragma: export
#include "core/link/last_resort_messages.h"  // IWYU pragma: export
#include "core/link/message_type.h"          // IWYU pragma: export
#include "core/link/process_messages.h"      // IWYU pragma: export
#include "core/link/request_messages.h"      // IWYU pragma: export
#include "core/link/status_messages.h"       // IWYU pragma: export
#include "core/link/store_messages.h"        // IWYU pragma: export
