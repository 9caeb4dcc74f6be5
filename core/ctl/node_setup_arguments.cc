// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/node_setup_arguments.h"

#include <ostream>

#include <boost/program_options.hpp>

#include "core/ctl/option_parts.h"

namespace gantry::ctl {
namespace {

namespace po = boost::program_options;

constexpr char kNodeSetupHelp[] = R"(usage: gantryctl node-setup [OPTION...]

Writes gantry's runtimes into the configuration of this node's containerd, and shows the
change. Nothing else of it changes, containerd is asked first whether it takes the result,
and it is not restarted: that is left to you.

)";

po::options_description Options(NodeSetupArguments& arguments) {
  po::options_description options("options", 100);
  options.add_options()("help,h", "this text")("dry-run", po::bool_switch(&arguments.dry_run),
                                               "only shows the change")(
      "undo", po::bool_switch(&arguments.undo), "takes back what was written, and no more")(
      "check", po::bool_switch(&arguments.check),
      "changes nothing; fails where the files are not what these options say, or containerd runs "
      "since before they were")("runtime-classes", po::bool_switch(&arguments.runtime_classes),
                                "only prints RuntimeClasses for Kubernetes")(
      "handlers", po::value(&arguments.handlers)->value_name("HANDLER[=NAME][:SANDBOXER],..."),
      "gantry's handlers, the names of their runtimes, and who makes their pods; default: all of "
      "gantry.yaml, by their names, runc as gantry")(
      "sandboxer", po::value(&arguments.sandboxer)->value_name("WORD"),
      "of those that say none: podsandbox (default), shim, controller")(
      "shim", po::value(&arguments.shim)->value_name("PATH"),
      "containerd-shim-gantry-v1, where it is not in containerd's PATH")(
      "distribution", po::value(&arguments.distribution)->value_name("WORD"),
      "containerd, k3s, rke2; default: the one that is there")(
      "containerd", po::value(&arguments.containerd)->value_name("PROGRAM"),
      "the containerd of this node; default: the distribution's, or that of PATH")(
      "containerd-config", po::value(&arguments.containerd_config)->value_name("FILE"),
      "its configuration; default: the distribution's")(
      "socket", po::value(&arguments.socket)->value_name("SOCKET"),
      "check: where it listens; default: the distribution's")(
      "config", po::value(&arguments.config)->value_name("FILE"),
      "gantry's configuration; default $GANTRY_CONFIG, /etc/gantry/gantry.yaml")(
      "json", po::bool_switch(&arguments.json), "JSON instead of text");
  return options;
}

}  // namespace

std::vector<Help::Option> NodeSetupOptions() {
  NodeSetupArguments arguments;
  return PartsOf(Options(arguments));
}

std::optional<int> ParseNodeSetup(const std::vector<std::string>& words,
                                  NodeSetupArguments& arguments, std::ostream& out,
                                  std::ostream& err) {
  const po::options_description options = Options(arguments);
  po::variables_map values;
  // The seam to Boost.
  try {
    po::store(po::command_line_parser(words)
                  .options(options)
                  .positional(po::positional_options_description())
                  .run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    err << "gantryctl: " << error.what() << "; see gantryctl node-setup --help\n";
    return kUsage;
  }
  if (values.contains("help")) {
    out << kNodeSetupHelp << options;
    return 0;
  }
  if (static_cast<int>(arguments.undo) + static_cast<int>(arguments.check) +
          static_cast<int>(arguments.runtime_classes) >
      1) {
    err << "gantryctl: --undo, --check and --runtime-classes are three commands\n";
    return kUsage;
  }
  return std::nullopt;
}

}  // namespace gantry::ctl
