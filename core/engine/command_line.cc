// SPDX-License-Identifier: Apache-2.0
//
// What gantryd is told: by flags, else by the environment that the keeper gives it, else by its
// defaults. Boost throws for what it does not understand; that ends here, as an error with its
// text.
#include "core/engine/command_line.h"

#include <cstdlib>
#include <sstream>
#include <vector>

#include <boost/program_options.hpp>

#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/link/message_type.h"
#include "core/os/fs.h"

namespace gantry::engine {
namespace {

namespace po = boost::program_options;

std::string FromEnvironment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : otherwise;
}

/// The folder of this program.
std::string OwnDirectory() {
  const Result<std::string> self = ReadLink("/proc/self/exe");
  return self ? self->substr(0, self->rfind('/')) : std::string("/usr/libexec/gantry");
}

po::options_description Describe(CommandLine& line) {
  po::options_description options("gantryd, the engine of gantry; started by gantry-keeper");
  options.add_options()("help,h", po::bool_switch(&line.help), "show this")(
      "version,v", po::bool_switch(&line.version), "show the version")(
      "config",
      po::value(&line.config)
          ->default_value(FromEnvironment("GANTRY_CONFIG", std::string(config::kDefaultPath))),
      "the configuration file")(
      "run-dir",
      po::value(&line.run_dir)->default_value(FromEnvironment("GANTRY_RUN_DIR", "/run/gantry")),
      "sockets and state")(
      "libexec-dir",
      po::value(&line.libexec)
          ->default_value(FromEnvironment("GANTRY_LIBEXEC_DIR", OwnDirectory())),
      "where plugins/ is")("probe-plugin", po::value<std::vector<std::string>>()->multitoken(),
                           "PATH NAME: say whether a plugin can be loaded, and end")(
      "features", po::bool_switch(&line.features),
      "say what containers of a handler can have, and end; its runtime options are read from "
      "stdin")("handler", po::value(&line.handler), "with --features: which handler")(
      "options-type", po::value(&line.options_type),
      "with --features: the type URL of the options");
  return options;
}

}  // namespace

Result<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  line.standby = FromEnvironment(link::kStandbyVariable, "") == "1";
  // Boost's seam: it reports errors by exceptions.
  try {
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, Describe(line)), values);
    po::notify(values);
    if (values.contains("probe-plugin")) {
      const auto words = values["probe-plugin"].as<std::vector<std::string>>();
      if (words.size() != 2) {
        return Fail(Code::kInvalidArgument, "--probe-plugin takes a path and a name");
      }
      line.probe_path = words[0];
      line.probe_name = words[1];
    }
  } catch (const po::error& e) {
    return Fail(Code::kInvalidArgument, "{}", e.what());
  }
  return line;
}

std::string Usage() {
  CommandLine line;
  std::ostringstream text;
  text << Describe(line);
  return text.str();
}

}  // namespace gantry::engine
