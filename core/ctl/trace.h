// SPDX-License-Identifier: Apache-2.0
//
// What the flight recorder has (core/trace), as text. Neither engine nor keeper is asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/ctl/arguments.h"
#include "core/trace/step.h"

namespace gantry::ctl {

/// Which steps are shown.
struct TraceFilter {
  /// Empty: all.
  std::string ns;
  /// A whole id, or the beginning of one. Empty: all.
  std::string id;
  /// When they began at the earliest, since the epoch.
  int64_t since_ns = 0;
};

/// Those of `steps`, which are in order, that `filter` asks for. With an id also what the engines
/// did between the first of them and the last: a restart explains what stands around it.
std::vector<trace::Step> Select(const std::vector<trace::Step>& steps, const TraceFilter& filter);

/// `one_id`: there are no columns for namespaces and ids. `all`: all that the ring holds, by which
/// it is told whether an open step can still end.
std::string TraceTable(const std::vector<trace::Step>& steps, const std::vector<trace::Step>& all,
                       bool one_id);
/// An array of objects.
std::string TraceJson(const std::vector<trace::Step>& steps, const std::vector<trace::Step>& all);

/// `trace ID` or `trace --all`. Errors: kInvalidArgument: neither or both; kNotFound: there is
/// nothing of that id, and since when there are steps at all.
Result<std::string> ShowTrace(const Arguments& arguments);

}  // namespace gantry::ctl
