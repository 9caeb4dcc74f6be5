// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>

namespace gantry::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Three digits that matter, no exponent.
std::string Number(std::optional<double> value) {
  if (!value) {
    return "-";
  }
  const double size = std::abs(*value);
  const int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return Format("{:.{}f}", *value, digits);
}

Json Rounded(std::optional<double> value) {
  if (!value) {
    return nullptr;
  }
  return std::round(*value * 1e4) / 1e4;
}

std::string Verdict(const Row& row) {
  if (!row.met) {
    return row.ours ? "" : row.not_here ? "NOT HERE" : "FAILED";
  }
  return *row.met ? "met" : "MISSED";
}

std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool number = i >= 1 && i <= 3;
    line +=
        number ? Format("{:>{}}  ", cells[i], widths[i]) : Format("{:<{}}  ", cells[i], widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines.front().size());
  for (const auto& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  std::string text;
  for (const auto& cells : lines) {
    text += Line(cells, widths);
  }
  return text;
}

Status WriteLines(const std::string& path, const std::vector<Json>& items) {
  std::ofstream file(path, std::ios::trunc);
  file << "[\n";
  for (size_t i = 0; i < items.size(); ++i) {
    file << items[i].dump() << (i + 1 < items.size() ? ",\n" : "\n");
  }
  file << "]\n";
  file.flush();
  if (!file) {
    return Fail(Code::kInternal, "write '{}': it did not work", path);
  }
  return {};
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (!ours || !peer || *peer == 0) {
    return std::nullopt;
  }
  return *ours / *peer;
}

Row Row::RatioAtMost(double limit) && {
  target = Format("ratio <= {}", Number(limit));
  met = ratio() && *ratio() <= limit;
  return std::move(*this);
}

Row Row::RatioBelow(double limit) && {
  target = Format("ratio < {}", Number(limit));
  met = ratio() && *ratio() < limit;
  return std::move(*this);
}

Row Row::RatioAtLeast(double limit) && {
  target = Format("ratio >= {}", Number(limit));
  met = ratio() && *ratio() >= limit;
  return std::move(*this);
}

Row Row::AtMost(double limit) && {
  target = Format("<= {} {}", Number(limit), unit);
  met = ours && *ours <= limit;
  return std::move(*this);
}

void Report::Add(Row row) { rows_.push_back(std::move(row)); }

void Report::AddPart(const std::string& row, const std::string& part, double ours, double peer) {
  parts_.push_back({row, part, ours, peer});
}

void Report::AddPhases(const std::string& row, const Pair& pair) {
  AddPhases(row, pair, pair.ours.names());
}

void Report::AddPhases(const std::string& row, const Pair& pair,
                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    AddPart(row, name, pair.ours.MedianOf(name), pair.peer.MedianOf(name));
  }
}

void Report::AddFailure(const std::string& row, const Error& error) {
  failed_ = true;
  Row failure;
  failure.id = row;
  failure.what = "not measured: " + error.message;
  failure.met = std::nullopt;
  rows_.push_back(std::move(failure));
}

void Report::AddNotHere(const std::string& row, const std::string& needs) {
  Row absent;
  absent.id = row;
  absent.what = "not measured here: needs " + needs;
  absent.not_here = true;
  rows_.push_back(std::move(absent));
}

std::string Report::Table() const {
  std::vector<std::vector<std::string>> lines{
      {"row", "gantry", "stock", "ratio", "unit", "target", "", "what"}};
  for (const Row& row : rows_) {
    lines.push_back({row.id, Number(row.ours), Number(row.peer), Number(row.ratio()), row.unit,
                     row.target, Verdict(row), row.what});
  }
  std::string text = Aligned(lines);
  if (!parts_.empty()) {
    std::vector<std::vector<std::string>> parts{{"part of", "gantry", "stock", "ratio", "part"}};
    for (const Part& part : parts_) {
      const Row shares{.id = "",
                       .what = "",
                       .unit = "",
                       .ours = part.ours,
                       .peer = part.peer,
                       .target = "",
                       .met = {}};
      parts.push_back(
          {part.row, Number(part.ours), Number(part.peer), Number(shares.ratio()), part.part});
    }
    text += "\n" + Aligned(parts);
  }
  for (const std::string& note : notes_) {
    text += "\n" + note + "\n";
  }
  return text;
}

Status Report::Write(const std::string& folder) const {
  std::vector<Json> rows;
  for (const Row& row : rows_) {
    rows.push_back({{"id", row.id},
                    {"what", row.what},
                    {"ours", Rounded(row.ours)},
                    {"peer", Rounded(row.peer)},
                    {"unit", row.unit},
                    {"ratio", Rounded(row.ratio())},
                    {"target", row.target},
                    {"met", row.met ? Json(*row.met) : Json(nullptr)}});
  }
  std::vector<Json> parts;
  for (const Part& part : parts_) {
    parts.push_back({{"row", part.row},
                     {"part", part.part},
                     {"ours", Rounded(part.ours)},
                     {"peer", Rounded(part.peer)}});
  }
  GANTRY_CHECK_OK(WriteLines(folder + "/bench.json", rows));
  return WriteLines(folder + "/bench-parts.json", parts);
}

}  // namespace gantry::bench
