// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C leaves no gantry behind.
#pragma once

namespace gantry::contract {

/// From now on SIGINT, SIGTERM and SIGHUP remove what the tests have made and end the
/// program with 128 + signal. To be called once.
void EndTestsOnSignals();

}  // namespace gantry::contract
