// SPDX-License-Identifier: Apache-2.0
//
// Steps are in the order in which they began. One without an end is under way, unless an engine has
// come up after it: then the one that it began in was ended before it, and what became of it is
// told by a step of the same name that is marked as begun again.
#include "core/ctl/trace.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <gantry/format.h>

#include "core/ctl/client.h"
#include "core/ctl/output.h"
#include "core/ctl/since.h"
#include "core/trace/ring.h"

namespace gantry::ctl {
namespace {

bool IsEngines(const trace::Step& step) { return step.kind == trace::Kind::kEngine; }

/// Steps up to this one are of engines that have ended.
uint64_t LastEngine(const std::vector<trace::Step>& all) {
  uint64_t last = 0;
  for (const trace::Step& step : all) {
    if (IsEngines(step) && step.what == trace::kComeUp) {
      last = step.number;
    }
  }
  return last;
}

std::string_view OpenText(const trace::Step& step, uint64_t last_engine) {
  return step.number < last_engine ? "its engine ended" : "under way";
}

/// `1.234ms`, of which the last digit is a microsecond; whole milliseconds from ten seconds on.
std::string TookText(int64_t ns) {
  const auto ms = static_cast<double>(ns) / 1e6;
  return ms < 10'000 ? Format("{:.3f}ms", ms) : Format("{:.0f}ms", ms);
}

std::string ResultText(const trace::Step& step, uint64_t last_engine) {
  if (!step.end) {
    return std::string(OpenText(step, last_engine));
  }
  const trace::End& end = *step.end;
  std::string text = end.code == Code::kOk ? "ok" : std::string(CodeName(end.code));
  if (!end.detail.empty()) {
    text += ": " + end.detail;
  }
  return text;
}

std::string WhatText(const trace::Step& step) {
  std::string text = step.again ? step.what + " (again)" : step.what;
  return step.exec.empty() ? text : text + " " + step.exec;
}

/// Containers' ids are long: `trace 1a2b3c` shows the only one that begins so.
bool Matches(const trace::Step& step, const TraceFilter& filter, bool whole) {
  const std::string_view ns = std::string_view(filter.ns).substr(0, trace::kMaxNs);
  const std::string_view id = std::string_view(filter.id).substr(0, trace::kMaxId);
  return (ns.empty() || step.ns == ns) &&
         (id.empty() || (whole ? step.id == id : step.id.starts_with(id)));
}

std::string Nothing(const TraceFilter& filter, const std::vector<trace::Step>& all) {
  const std::string since = all.empty() ? "there is no step at all"
                                        : "the oldest step is of " + TimeText(all.front().begun_ns);
  return Format("trace '{}': no step of that id: {}", filter.id, since);
}

Result<TraceFilter> FilterOf(const Arguments& arguments) {
  if (arguments.all == !arguments.operands.empty()) {
    return Fail(Code::kInvalidArgument, "trace: either an ID or --all");
  }
  TraceFilter filter;
  filter.ns = arguments.ns;
  filter.id = arguments.all ? "" : arguments.operands.front();
  if (!arguments.since.empty()) {
    GANTRY_TRY(filter.since_ns, ParseSince(arguments.since, NowNs()));
  }
  return filter;
}

}  // namespace

std::vector<trace::Step> Select(const std::vector<trace::Step>& steps, const TraceFilter& filter) {
  const bool whole = std::ranges::any_of(
      steps, [&](const trace::Step& step) { return Matches(step, filter, true); });
  std::vector<trace::Step> found;
  std::vector<trace::Step> engines;
  for (const trace::Step& step : steps) {
    if (step.begun_ns < filter.since_ns) {
      continue;
    }
    if (Matches(step, filter, whole)) {
      std::ranges::move(std::exchange(engines, {}), std::back_inserter(found));
      found.push_back(step);
    } else if (IsEngines(step) && !filter.id.empty() && !found.empty()) {
      engines.push_back(step);
    }
  }
  return found;
}

std::string TraceTable(const std::vector<trace::Step>& steps, const std::vector<trace::Step>& all,
                       bool one_id) {
  const uint64_t last_engine = LastEngine(all);
  std::vector<std::string> head = {"TIME", "TOOK", "WAITED", "OF", "STEP", "RESULT"};
  if (!one_id) {
    head.insert(head.begin() + 1, {"NAMESPACE", "ID"});
  }
  Table table(head);
  for (const trace::Step& step : steps) {
    std::vector<std::string> cells = {
        TimeText(step.begun_ns),
        step.end ? TookText(step.end->took_ns) : "",
        step.end && step.end->waited_ns > 0 ? TookText(step.end->waited_ns) : "",
        std::string(trace::KindName(step.kind)),
        WhatText(step),
        ResultText(step, last_engine)};
    if (!one_id) {
      cells.insert(cells.begin() + 1, {step.ns, step.id});
    }
    table.Add(std::move(cells));
  }
  return table.str();
}

std::string TraceJson(const std::vector<trace::Step>& steps, const std::vector<trace::Step>& all) {
  const uint64_t last_engine = LastEngine(all);
  JsonWriter json;
  json.Array();
  for (const trace::Step& step : steps) {
    json.Object()
        .Member("number", step.number)
        .Member("time", TimeText(step.begun_ns))
        .Member("namespace", step.ns)
        .Member("id", step.id)
        .Member("exec_id", step.exec)
        .Member("of", trace::KindName(step.kind))
        .Member("step", step.what)
        .Member("again", step.again)
        .Member("ended", step.end.has_value());
    if (step.end) {
      json.Member("took_ns", step.end->took_ns)
          .Member("waited_ns", step.end->waited_ns)
          .Member("code", CodeName(step.end->code))
          .Member("detail", step.end->detail);
    } else {
      json.Member("detail", OpenText(step, last_engine));
    }
    json.End();
  }
  return json.End().Take();
}

Result<std::string> ShowTrace(const Arguments& arguments) {
  GANTRY_TRY(const TraceFilter filter, FilterOf(arguments));
  const auto all = trace::ReadRing(RunDirOf(arguments.address));
  if (!all) {
    if (all.error().code == Code::kNotFound) {
      return Fail(Code::kNotFound, "trace: {}: no engine has written there yet",
                  all.error().message);
    }
    return std::unexpected(Error(all.error()).Within("trace"));
  }
  const std::vector<trace::Step> steps = Select(*all, filter);
  if (steps.empty() && !filter.id.empty()) {
    return Fail(Code::kNotFound, "{}", Nothing(filter, *all));
  }
  return arguments.json ? TraceJson(steps, *all) : TraceTable(steps, *all, !filter.id.empty());
}

}  // namespace gantry::ctl
