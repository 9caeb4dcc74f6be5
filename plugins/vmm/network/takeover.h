// SPDX-License-Identifier: Apache-2.0
//
// What a guest cannot take over from a pod's network namespace, found before anything is changed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/pod_network.h>

namespace gantry::vmm {

/// A machine has places for so many NICs.
inline constexpr size_t kMostInterfaces = 16;

/// `links`: all of the namespace. Errors: kFailedPrecondition: an interface or a route that a guest
/// cannot have, by name, and what to use instead. Thread: any. Blocks: never.
Status CheckTakeover(const net::PodNetwork& network, const std::vector<net::LinkInfo>& links);

}  // namespace gantry::vmm
