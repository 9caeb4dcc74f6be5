// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/report.h"

#include <cerrno>

#include <gantry/format.h>

namespace gantry::fault {
namespace {

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string Line(const std::string& operation, const std::string& point, const std::string& kills,
                 const std::string& no_space, const std::string& no_descriptors) {
  return Padded(operation, 34) + Padded(point, 40) + Padded(kills, 6) + Padded(no_space, 8) +
         no_descriptors + "\n";
}

std::string Count(int times) { return times == 0 ? "-" : std::to_string(times); }

}  // namespace

Report& Report::Get() {
  static Report report;
  return report;
}

void Report::Add(const std::string& operation, const Fault& fault, bool happened) {
  Row& row = rows_[{operation, fault.point}];
  int& count = !happened                 ? row.missed
               : fault.failure == 0      ? row.kills
               : fault.failure == EMFILE ? row.no_descriptors
                                         : row.no_space;
  ++count;
}

std::string Report::Text() const {
  std::string text = Line("operation", "point", "kill", "ENOSPC", "EMFILE");
  Row sum;
  for (const auto& [key, row] : rows_) {
    text += Line(key.first, key.second, Count(row.kills), Count(row.no_space),
                 Count(row.no_descriptors));
    sum.kills += row.kills;
    sum.no_space += row.no_space;
    sum.no_descriptors += row.no_descriptors;
    sum.missed += row.missed;
  }
  return text + Format(
                    "{} points of operations: {} kills, {} times ENOSPC, {} times EMFILE; {} times "
                    "a point was not passed so often again\n",
                    rows_.size(), sum.kills, sum.no_space, sum.no_descriptors, sum.missed);
}

}  // namespace gantry::fault
