// SPDX-License-Identifier: Apache-2.0
//
// Which faults a sweep tries.
#pragma once

#include <vector>

#include "tests/fault/harness/faults.h"

namespace gantry::fault {

/// What may go wrong in one step; its last one first.
using FaultList = std::vector<Fault>;

/// Once at each time that it was passed, or at 32 of more, and what else can go wrong there once.
void AddFailures(const PassedPoint& point, FaultList& list);

/// Each that succeeds at each of those times, and one of those that are given up.
void AddUpgrades(const PassedPoint& point, FaultList& list);

/// GANTRY_FAULT_EVERY=N: leaves every Nth of each kind in all lists, another one with
/// another seed. And to look at one again: GANTRY_FAULT_ONLY is what the log says of it.
void Choose(std::vector<FaultList>& runs);

}  // namespace gantry::fault
