// SPDX-License-Identifier: Apache-2.0
//
// Tests that ask for something that a backend does not have: which, and why.
#pragma once

#include <string>

#include "tests/harness/settings.h"

namespace gantry::e2e {

/// Why the test that runs now does not apply; empty = it does.
std::string WhyNotHere(const Settings& settings);

}  // namespace gantry::e2e
