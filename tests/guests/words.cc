// SPDX-License-Identifier: Apache-2.0
// Counts words with as much of the C++ library as that takes: for the benchmark, a module of
// the size that small programs of such languages have.
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr const char* kText =
    "a module that a node has never seen is read and looked at and compiled, and a module "
    "that it has seen is there at once";

std::map<std::string, int> Count(std::istream& text) {
  std::map<std::string, int> counts;
  for (std::string word; text >> word;) {
    ++counts[word];
  }
  return counts;
}

}  // namespace

int main() {
  std::istringstream text(kText);
  const std::map<std::string, int> counts = Count(text);
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& one, const auto& other) { return one.second > other.second; });
  for (const auto& [word, count] : sorted) {
    std::cout << count << ' ' << word << '\n';
  }
  return 0;
}
