// SPDX-License-Identifier: Apache-2.0
//
// The command line of a double: the words that the VMM has, and no other one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::test {

struct CommandLine {
  /// By the option's name: "--id".
  std::map<std::string, std::string, std::less<>> values;
  std::set<std::string, std::less<>> flags;
  /// Behind "--".
  std::vector<std::string> rest;
  /// What it does not know, or what has no value; empty: nothing is wrong.
  std::string wrong;

  std::string Value(std::string_view name, const std::string& otherwise = {}) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
};

/// `with_value` and `flags`: names of options.
inline CommandLine ReadCommandLine(int argc, char** argv,
                                   const std::set<std::string_view>& with_value,
                                   const std::set<std::string_view>& flags) {
  CommandLine line;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      line.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (flags.contains(words[i])) {
      line.flags.insert(words[i]);
    } else if (with_value.contains(words[i]) && i + 1 < words.size()) {
      line.values[words[i]] = words[i + 1];
      ++i;
    } else {
      line.wrong = words[i];
      break;
    }
  }
  return line;
}

}  // namespace gantry::test
