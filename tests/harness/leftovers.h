// SPDX-License-Identifier: Apache-2.0
//
// What a test must not leave: processes, mounts, cgroups, fifos, sockets,
// bundles, records, descriptors of gantry's processes, ends that the keeper keeps.
#pragma once

#include <set>
#include <string>

#include "tests/harness/node.h"

namespace gantry::e2e {

/// How many descriptors keeper and engine hold with nothing to do.
struct Baseline {
  int keeper = 0;
  int engine = 0;
};

Baseline ReadBaseline(const Node& node);

/// What `Leftovers` would find now, descriptors excepted: of a container that is to stay.
std::set<std::string> WhatIsThere(const Node& node, const std::string& id_part);

/// Waits until nothing is left (containerd removes some of it after it has
/// answered) and returns what still is, one item a line; empty = nothing.
/// `id_part` is part of every id that the test used; lines in `known` were left
/// by earlier tests, and new ones are added to it.
std::string Leftovers(const Node& node, const Baseline& baseline, const std::string& id_part,
                      std::set<std::string>& known);

/// Removes every task and container of the run's namespace.
void Sweep(const Node& node);

}  // namespace gantry::e2e
