// SPDX-License-Identifier: Apache-2.0
//
// What engine and keeper answer, as text.
#pragma once

#include <cstdint>
#include <string>

#include "core/link/status_messages.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// Sandboxes with their containers below them, then those that stand alone.
std::string ListTable(const v1::ListResponse& list, int64_t now_ns);
/// The same, with what the engine does and holds for each sandbox.
std::string CostTable(const v1::ListResponse& list);
/// An array of objects with the fields of `Instance`.
std::string ListJson(const v1::ListResponse& list);

std::string InspectText(const v1::InspectResponse& answer, int64_t now_ns);
std::string InspectJson(const v1::InspectResponse& answer);

std::string StatusText(const v1::StatusResponse& status, const link::KeeperStatus& keeper,
                       int64_t now_ns);
std::string StatusJson(const v1::StatusResponse& status, const link::KeeperStatus& keeper);

/// How a process ended, as a wait status says: "exited with 1", "was killed by signal 11".
std::string EndText(int wait_status);

}  // namespace gantry::ctl
