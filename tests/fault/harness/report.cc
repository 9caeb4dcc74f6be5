// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/report.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gantry/format.h>

namespace gantry::fault {
namespace {

constexpr size_t kOperationWidth = 34;
constexpr size_t kPointWidth = 40;

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string Count(int times) { return times == 0 ? "-" : std::to_string(times); }

const char* NameOfColumn(size_t column) { return NameOf(static_cast<Trouble>(column)); }

}  // namespace

Report& Report::Get() {
  static Report report;
  return report;
}

void Report::Add(const std::string& operation, const Fault& fault, bool happened) {
  Row& row = rows_[{operation, fault.point}];
  ++(happened ? row.happened[static_cast<size_t>(fault.trouble)] : row.missed);
}

std::string Report::Text() const {
  Row sum;
  for (const auto& [key, row] : rows_) {
    sum.missed += row.missed;
    for (size_t i = 0; i < row.happened.size(); ++i) {
      sum.happened[i] += row.happened[i];
    }
  }
  const auto line = [&](const std::string& operation, const std::string& point,
                        const auto& cell_of) {
    std::string text = Padded(operation, kOperationWidth) + Padded(point, kPointWidth);
    for (size_t i = 0; i < sum.happened.size(); ++i) {
      if (sum.happened[i] > 0) {
        text += Padded(cell_of(i), std::string_view(NameOfColumn(i)).size() + 2);
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text =
      line("operation", "point", [](size_t i) { return std::string(NameOfColumn(i)); });
  for (const auto& [key, row] : rows_) {
    text += line(key.first, key.second, [&](size_t i) { return Count(row.happened[i]); });
  }
  text += Format("{} points of operations:", rows_.size());
  for (size_t i = 0; i < sum.happened.size(); ++i) {
    text += sum.happened[i] > 0 ? Format(" {} {},", sum.happened[i], NameOfColumn(i)) : "";
  }
  return text + Format(" {} times a point was not passed so often again\n", sum.missed);
}

}  // namespace gantry::fault
