// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl events`: what has happened lately, and with --follow what happens.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/ctl/arguments.h"
#include "core/ctl/live.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// One line for people.
std::string EventLine(const v1::Event& event);
/// One line, a JSON object with the fields of `Event`.
std::string EventJson(const v1::Event& event);

/// Goes on without end with `arguments.follow`, over ends of the engine and of gantry-grpc.
Status ShowEvents(const Arguments& arguments, const Output& output);

}  // namespace gantry::ctl
