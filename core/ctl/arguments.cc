// SPDX-License-Identifier: Apache-2.0
//
// The options of all commands and the help text are here; which command takes which operands is
// in commands.cc.
#include "core/ctl/arguments.h"

#include <ostream>

#include <boost/program_options.hpp>

namespace gantry::ctl {
namespace {

namespace po = boost::program_options;

constexpr char kHelp[] = R"(usage: gantryctl COMMAND [OPTION...]

  ps              all sandboxes and containers of all backends
  inspect ID      one of them, with its processes
  status          the engine, its keeper and its backends
  check [FILE]    a configuration file, or a plugin (.so); default: the configuration
  doctor          what this node lacks for which backend, and how to get it
  restart         a newly started engine in place of the one that runs
  upgrade         the same, with --engine of another program; what runs goes on;
                  with --keeper: the keeper becomes that program
  delete ID       ends and forgets what is left out since engines crashed of it
                  (see status); with --all everything that runs: for a node on which
                  containerd is gone for good
  NAME ...        commands of a backend that has some: gantryctl wasm --help

)";

po::options_description Options(Arguments& arguments) {
  po::options_description options("options", 100);
  options.add_options()("help,h", "this text")("version,v", "the version")(
      "json", po::bool_switch(&arguments.json), "JSON instead of a table")(
      "costs", po::bool_switch(&arguments.costs),
      "ps: what the engine does and holds for each sandbox")(
      "namespace,n", po::value(&arguments.ns)->value_name("NS"),
      "ps, inspect, delete: of this containerd namespace")(
      "address", po::value(&arguments.address)->value_name("SOCKET"),
      "the engine's socket; default $GANTRY_RUN_DIR/gantry.sock")(
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
      "delete: every pod and container, without containerd");
  return options;
}

}  // namespace

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
