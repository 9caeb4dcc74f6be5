// SPDX-License-Identifier: Apache-2.0
//
// Where the operator's API is: proto/gantry/operator.proto, spoken over ttrpc.
// For gantryctl, and for the engine that serves it.
#pragma once

namespace gantry::ctl {

inline constexpr char kService[] = "gantry.v1.Operator";
inline constexpr char kList[] = "List";
inline constexpr char kInspect[] = "Inspect";
inline constexpr char kStatus[] = "Status";

/// The socket, in the run directory. The keeper listens there, so that a call
/// during a restart of the engine waits instead of failing.
inline constexpr char kSocketName[] = "gantry.sock";

}  // namespace gantry::ctl
