// SPDX-License-Identifier: Apache-2.0
//
// What a container says on its standard output, waited for.
#pragma once

#include <string>

#include <gantry/error.h>

#include "tests/performance/bundle.h"

namespace gantry::bench {

/// Until there is something to read, which stays there.
/// Errors: kDeadlineExceeded after 30 s; kInternal when it ends before. Both name `what`.
Status AwaitOutput(const Stdio& stdio, const std::string& what);

/// The next line, without its end. Errors: as AwaitOutput.
Result<std::string> ReadLine(const Stdio& stdio, const std::string& what);

}  // namespace gantry::bench
