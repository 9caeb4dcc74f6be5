// SPDX-License-Identifier: Apache-2.0
//
// What a command line of gantryctl says.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace gantry::ctl {

/// Exit codes: the command failed, or `doctor` found something missing.
inline constexpr int kFailed = 1;
/// There is no such command, option or operand.
inline constexpr int kUsage = 2;

struct Arguments {
  std::string command;
  std::vector<std::string> operands;
  std::string ns;
  std::string address;
  std::string config;
  std::string name;
  std::string engine;
  std::string keeper;
  std::string since;
  /// Seconds.
  double interval = 2;
  /// So many tables; 0: without end.
  uint64_t count = 0;
  bool follow = false;
  bool once = false;
  bool json = false;
  bool costs = false;
  bool no_fallback = false;
  bool all = false;
};

/// What --help says, in parts.
struct Help {
  struct Option {
    /// "json", without dashes.
    std::string name;
    /// "n" of -n; empty: it has none.
    std::string letter;
    /// What its value is called; empty: it takes none.
    std::string value;
    std::string text;
    /// The commands that it is for; empty: it is for all.
    std::vector<std::string> commands;
  };

  struct Command {
    std::string name;
    /// As in "[FILE]"; empty: none.
    std::string operands;
    std::string text;
    /// Of a command with a --help of its own: it takes these, and none of `Help::options`. Empty:
    /// it takes those of them that are for it.
    std::vector<Option> own_options = {};
  };

  std::vector<Command> commands;
  std::vector<Option> options;
};

Help ReadHelp();

/// Into `arguments`, of which the defaults stay where nothing is said. Gives an exit code where
/// there is nothing more to do: help and version are on `out` then, what is wrong on `err`.
std::optional<int> Parse(const std::vector<std::string>& words, Arguments& arguments,
                         std::ostream& out, std::ostream& err);

}  // namespace gantry::ctl
