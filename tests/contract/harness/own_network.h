// SPDX-License-Identifier: Apache-2.0
//
// Containers and pods are on the node's network, as it takes least. A backend that refuses that, as
// one with virtual machines does, is tested with empty networks of their own.
#pragma once

namespace gantry::contract {

/// Set by the program's main before anything else.
bool& OwnNetworks();

}  // namespace gantry::contract
