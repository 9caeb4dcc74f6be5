// SPDX-License-Identifier: Apache-2.0
//
// Statistics as the message that containerd's `Stats` callers decode:
// `io.containerd.cgroups.v1.Metrics` or `io.containerd.cgroups.v2.Metrics`, whichever
// hierarchy the node's controllers are on: a cgroup's, or what a backend has measured.
// Written by hand on the wire: the messages are flat, and gantry has no other use for them.
// Source: containerd/cgroups v3.1, cgroup{1,2}/stats.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/metrics.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/statistics.h>

namespace gantry::stats {

inline constexpr std::string_view kMetricsV1 = "io.containerd.cgroups.v1.Metrics";
inline constexpr std::string_view kMetricsV2 = "io.containerd.cgroups.v2.Metrics";

/// A message and its type, as containerd carries them.
struct TypedMessage {
  std::string type_url;
  std::string value;
};

/// Reads the statistics and encodes them with the type that fits the node.
/// Errors: kNotFound when the cgroup is gone. Thread: any. Blocks: never for long.
Result<TypedMessage> ReadMetrics(const cgroup::Cgroup& cgroup);

/// What a backend has measured, on a node whose cgroups are of that kind. Every part of the
/// message is there, be nothing of it counted: clients look into each without asking.
/// Errors: kResourceExhausted: more devices or interfaces than are told.
Result<TypedMessage> Encode(const ContainerMetrics& metrics, cgroup::CgroupMode node);

std::string EncodeMetrics(const cgroup::CgroupV1Stats& stats);
std::string EncodeMetrics(const cgroup::CgroupV2Stats& stats);

}  // namespace gantry::stats
