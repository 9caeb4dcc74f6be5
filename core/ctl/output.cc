// SPDX-License-Identifier: Apache-2.0
//
// Tables whose columns are as wide as their longest cell, a JSON writer that places the commas,
// and sizes and times as people read them.
#include "core/ctl/output.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::ctl {

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    std::ranges::replace_if(cell, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    if (cell.empty()) {
      cell = "-";
    }
  }
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size() && i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out += last ? row[i] : Format("{:<{}}", row[i], widths[i] + 2);
    }
    out += '\n';
  }
  return out;
}

void JsonWriter::NextItem() {
  if (std::exchange(after_key_, false)) {
    return;
  }
  if (!open_.empty()) {
    out_ += first_ ? "\n" : ",\n";
    out_.append(2 * open_.size(), ' ');
  }
  first_ = false;
}

JsonWriter& JsonWriter::Open(char bracket) {
  NextItem();
  out_ += bracket;
  open_ += bracket == '{' ? '}' : ']';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::End() {
  const char bracket = open_.back();
  open_.pop_back();
  if (!first_) {
    out_ += '\n';
    out_.append(2 * open_.size(), ' ');
  }
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  NextItem();
  out_ += oci::Quote(name) + ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) { return Raw(oci::Quote(text)); }

JsonWriter& JsonWriter::Raw(std::string_view json) {
  NextItem();
  out_ += json;
  return *this;
}

std::string JsonWriter::Take() { return std::move(out_) + "\n"; }

std::string BytesText(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == 0) {
    return "";
  }
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? Format("{} B", bytes) : Format("{:.1f} {}", value, kUnits[unit]);
}

std::string AgeText(int64_t then_ns, int64_t now_ns) {
  if (then_ns == 0) {
    return "";
  }
  const int64_t seconds = std::max<int64_t>(now_ns - then_ns, 0) / 1'000'000'000;
  if (seconds < 120) {
    return Format("{}s", seconds);
  }
  if (seconds < int64_t{120} * 60) {
    return Format("{}m", seconds / 60);
  }
  if (seconds < int64_t{48} * 3600) {
    return Format("{}h", seconds / 3600);
  }
  return Format("{}d", seconds / 86'400);
}

std::string TimeText(int64_t ns) {
  if (ns == 0) {
    return "";
  }
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds(ns)};
  return Format("{:%FT%T}Z", std::chrono::floor<std::chrono::milliseconds>(time));
}

std::string CpuText(uint64_t ns) {
  return ns == 0 ? "" : Format("{:.3f}s", static_cast<double>(ns) / 1e9);
}

std::string NumberText(uint64_t number) { return number == 0 ? "" : std::to_string(number); }

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace gantry::ctl
