// SPDX-License-Identifier: Apache-2.0
//
// What an engine that is started beside another looks at before it takes its place. The
// other one still works: what is found wrong now costs nothing.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/backend/backends.h"
#include "core/link/channel.h"

namespace gantry::engine {

/// Asks the keeper what there is, reads the records and loads the backends that they
/// name. Errors: kFailedPrecondition: a record of a later version, or a backend that
/// cannot be loaded, with what to do. What is unreadable otherwise is so for every
/// engine, and no reason.
/// Blocks: for the keeper, the files and the plugins.
Status CheckTakeover(link::BlockingChannel& keeper, backend::Backends& backends);

}  // namespace gantry::engine
