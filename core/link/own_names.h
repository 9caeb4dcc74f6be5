// SPDX-License-Identifier: Apache-2.0
//
// Under which names the keeper holds what the engine has for itself: one word each, of no owner
// (name_owner.h). Nothing but the engine drops them, and the next engine takes them up.
#pragma once

namespace gantry::link {

/// The queue of events that wait for containerd.
inline constexpr char kOutboxMemfd[] = "events";
/// What has happened lately, for operators.
inline constexpr char kRecentEventsMemfd[] = "recent-events";
/// The process gantry-grpc. What it listens at has no name: the engine takes that over from the
/// process.
inline constexpr char kGrpcProcess[] = "grpc";

}  // namespace gantry::link
