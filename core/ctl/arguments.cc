// SPDX-License-Identifier: Apache-2.0
//
// The options of all commands and the help text are here; which command takes which operands is
// in commands.cc.
#include "core/ctl/arguments.h"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string_view>

#include <boost/program_options.hpp>

#include "core/ctl/node_setup.h"
#include "core/ctl/node_setup_arguments.h"
#include "core/ctl/option_parts.h"

namespace gantry::ctl {
namespace {

namespace po = boost::program_options;

constexpr char kHelp[] = R"(usage: gantryctl COMMAND [OPTION...]

  ps              all sandboxes and containers of all backends
  inspect ID      one of them, with its processes
  status          the engine, its keeper and its backends
  top             what each sandbox uses: processor, memory, processes; anew each interval
  events [ID]     what has happened lately to sandboxes, containers, engine and keeper; with
                  --follow what happens
  logs [ID]       what engine, keeper and gantry-grpc have logged, about one sandbox or all
  check [FILE]    a configuration file, or a plugin (.so); default: the configuration
  doctor          what this node lacks for which backend, and how to get it
  restart         a newly started engine in place of the one that runs
  upgrade         the same, with --engine of another program; what runs goes on;
                  with --keeper: the keeper becomes that program
  delete ID       ends and forgets what is left out since engines crashed of it
                  (see status); with --all everything that runs: for a node on which
                  containerd is gone for good
  trace ID        the steps of its life with their times, also of one that is deleted;
                  with --all of all there were in the last minutes; no engine is needed
  debug dump [FILE]
                  what a bug report needs, without secrets: gantry-debug-TIME.tar.gz
  node-setup      has containerd know gantry's runtimes; gantryctl node-setup --help
  NAME ...        commands of a backend that has some: gantryctl wasm --help

)";

po::options_description Options(Arguments& arguments) {
  po::options_description options("options", 100);
  options.add_options()("help,h", "this text")("version,v", "the version")(
      "json", po::bool_switch(&arguments.json), "JSON instead of a table")(
      "costs", po::bool_switch(&arguments.costs),
      "ps: what the engine does and holds for each sandbox")(
      "namespace,n", po::value(&arguments.ns)->value_name("NS"),
      "ps, inspect, top, events, delete, trace: of this containerd namespace")(
      "address", po::value(&arguments.address)->value_name("SOCKET"),
      "the engine's socket; default $GANTRY_RUN_DIR/gantry.sock. unix://SOCKET: by gRPC, at "
      "grpc.address of the configuration")("follow,f", po::bool_switch(&arguments.follow),
                                           "events: also those to come, without end")(
      "since", po::value(&arguments.since)->value_name("TIME"),
      "events, logs, trace: nothing before; 30s, 10m, 2h, 7d ago, or as 2026-01-31T08:15:30Z")(
      "interval", po::value(&arguments.interval)->value_name("SECONDS"),
      "top: between two tables; default 2")("count", po::value(&arguments.count)->value_name("N"),
                                            "top: ends after so many tables")(
      "once", po::bool_switch(&arguments.once), "top: one table")(
      "config", po::value(&arguments.config)->value_name("FILE"),
      "the configuration; default $GANTRY_CONFIG, /etc/gantry/gantry.yaml")(
      "name", po::value(&arguments.name)->value_name("NAME"),
      "check: what the configuration calls the plugin")(
      "engine", po::value(&arguments.engine)->value_name("PROGRAM"),
      "upgrade: the new gantryd; default: the one that is installed")(
      "keeper", po::value(&arguments.keeper)->value_name("PROGRAM"),
      "upgrade: the keeper becomes this gantry-keeper")(
      "no-fallback", po::bool_switch(&arguments.no_fallback),
      "upgrade: the new engine stays, even where it crashes at once")(
      "all", po::bool_switch(&arguments.all),
      "delete: every pod and container, without containerd; trace: the steps of all");
  return options;
}

/// Of a line in the list of commands.
constexpr size_t kTermColumn = 2;
constexpr size_t kTextColumn = 18;

/// "trace ID        the steps": what is before the text's column, and behind it.
std::vector<Help::Command> ReadCommands() {
  std::vector<Help::Command> commands;
  std::istringstream lines(kHelp);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == kTermColumn) {
      const std::string term = line.substr(begin, line.find("  ", begin) - begin);
      const size_t blank = std::min(term.find(' '), term.size());
      commands.push_back(
          {term.substr(0, blank), term.substr(std::min(blank + 1, term.size())), "", {}});
    }
    if (begin == std::string::npos || commands.empty() || line.size() <= kTextColumn) {
      continue;
    }
    // A term that reaches into the text's column has the line to itself.
    const bool alone = begin == kTermColumn && line.find("  ", begin) == std::string::npos;
    std::string& text = commands.back().text;
    if (!alone) {
      text += (text.empty() ? "" : " ") + line.substr(kTextColumn);
    }
  }
  return commands;
}

/// The names in "ps, inspect: of this namespace; delete: ...": those of commands before a colon.
std::vector<std::string> CommandsOf(const std::string& text,
                                    const std::vector<Help::Command>& known) {
  std::vector<std::string> found;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream names(part.substr(0, std::min(part.find(':'), part.size())));
    for (std::string name; part.contains(':') && std::getline(names, name, ',');) {
      name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
      if (std::ranges::contains(known, name, &Help::Command::name)) {
        found.push_back(name);
      }
    }
  }
  return found;
}

}  // namespace

Help ReadHelp() {
  Help help;
  help.commands = ReadCommands();
  for (Help::Command& command : help.commands) {
    if (command.name == kNodeSetup) {
      command.own_options = NodeSetupOptions();
    }
  }
  Arguments arguments;
  help.options = PartsOf(Options(arguments));
  for (Help::Option& option : help.options) {
    option.commands = CommandsOf(option.text, help.commands);
  }
  return help;
}

std::optional<int> Parse(const std::vector<std::string>& words, Arguments& arguments,
                         std::ostream& out, std::ostream& err) {
  std::vector<std::string> operands;
  const po::options_description visible = Options(arguments);
  po::options_description all;
  all.add(visible).add_options()("operand", po::value(&operands));
  po::variables_map values;
  // The seam to Boost.
  try {
    po::store(po::command_line_parser(words)
                  .options(all)
                  .positional(po::positional_options_description().add("operand", -1))
                  .run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    err << "gantryctl: " << error.what() << "; see gantryctl --help\n";
    return kUsage;
  }
  if (values.contains("version")) {
    out << "gantryctl " << GANTRY_VERSION << "\n";
    return 0;
  }
  if (values.contains("help") || operands.empty()) {
    (operands.empty() && !values.contains("help") ? err : out) << kHelp << visible;
    return values.contains("help") ? 0 : kUsage;
  }
  arguments.command = operands.front();
  arguments.operands.assign(operands.begin() + 1, operands.end());
  return std::nullopt;
}

}  // namespace gantry::ctl
