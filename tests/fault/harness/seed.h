// SPDX-License-Identifier: Apache-2.0
//
// What is left to chance, and what makes it happen again.
#pragma once

namespace gantry::fault {

/// $GANTRY_FAULT_SEED, else one that nobody has chosen; printed once. Thread: the test's.
unsigned Seed();

}  // namespace gantry::fault
