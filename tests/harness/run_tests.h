// SPDX-License-Identifier: Apache-2.0
//
// What `main` of a program of such tests does.
#pragma once

#include "tests/harness/settings.h"

namespace gantry::e2e {

/// The tests run in a child; this process cleans up after it however it ends, so that a
/// crashed test leaves neither containers nor a containerd behind. Returns the status to
/// exit with.
int RunTests(const Settings& settings, int argc, char** argv);

}  // namespace gantry::e2e
