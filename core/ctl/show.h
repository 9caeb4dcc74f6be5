// SPDX-License-Identifier: Apache-2.0
//
// What the engine answers, as text.
#pragma once

#include <cstdint>
#include <string>

#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// Sandboxes with their containers below them, then those that stand alone.
std::string ListTable(const v1::ListResponse& list, int64_t now_ns);
/// An array of objects with the fields of `Instance`.
std::string ListJson(const v1::ListResponse& list);

std::string InspectText(const v1::InspectResponse& answer, int64_t now_ns);
std::string InspectJson(const v1::InspectResponse& answer);

std::string StatusText(const v1::StatusResponse& status, int64_t now_ns);
std::string StatusJson(const v1::StatusResponse& status);

}  // namespace gantry::ctl
