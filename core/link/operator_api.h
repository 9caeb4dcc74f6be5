// SPDX-License-Identifier: Apache-2.0
//
// Where the operator's API is, and what its calls are called: proto/gantry/operator.proto. For
// gantryctl, for the engine that serves it over ttrpc, and for gantry-grpc.
#pragma once

namespace gantry::operator_api {

inline constexpr char kService[] = "gantry.v1.Operator";
inline constexpr char kList[] = "List";
inline constexpr char kInspect[] = "Inspect";
inline constexpr char kStatus[] = "Status";
inline constexpr char kEvents[] = "Events";
// Over gRPC alone.
inline constexpr char kWatchEvents[] = "WatchEvents";
inline constexpr char kKeeper[] = "Keeper";
inline constexpr char kUpgradeEngine[] = "UpgradeEngine";
inline constexpr char kUpgradeKeeper[] = "UpgradeKeeper";
inline constexpr char kDelete[] = "Delete";

/// The socket, in the run directory. The keeper listens there, so that a call
/// during a restart of the engine waits instead of failing.
inline constexpr char kSocketName[] = "gantry.sock";

}  // namespace gantry::operator_api
