// SPDX-License-Identifier: Apache-2.0
#include "core/door/command_line.h"

#include <sstream>

#include <boost/program_options.hpp>

namespace gantry::door {
namespace {

namespace po = boost::program_options;

po::options_description Describe(CommandLine& line) {
  po::options_description options(
      "gantry-grpc, gantry's gRPC server; started by gantryd where grpc.address or "
      "tracing.endpoint is configured");
  options.add_options()("help,h", po::bool_switch(&line.help), "show this")(
      "version,v", po::bool_switch(&line.version), "show the version")(
      "run-dir", po::value(&line.run_dir)->default_value("/run/gantry"), "the keeper's sockets")(
      "sandboxes-dir", po::value(&line.sandboxes)->default_value("/run/gantry-sandboxes"),
      "folders of the sandboxes that containerd's controller makes")(
      "containerd", po::value(&line.containerd)->default_value("/run/containerd/containerd.sock"),
      "containerd's socket")("containerd-ttrpc", po::value(&line.containerd_ttrpc),
                             "its socket for events; default: the other one with '.ttrpc'")(
      "address", po::value(&line.address), "where it listens")(
      "listen-fd", po::value(&line.listen_fd), "a listening socket")(
      "export-to", po::value(&line.export_to),
      "the collector that gets the engine's spans: dns:HOST:PORT, unix:/PATH")(
      "dial", po::value(&line.dial),
      "serves nothing, but passes on what is asked by ttrpc on --socket-fd to the gRPC server at "
      "this "
      "socket")("socket-fd", po::value(&line.socket_fd), "a connected socket");
  return options;
}

Status Check(CommandLine& line) {
  if (line.help || line.version) {
    return {};
  }
  if (!line.dial.empty()) {
    return line.socket_fd >= 3 ? Status()
                               : Fail(Code::kInvalidArgument,
                                      "--socket-fd: a descriptor of a connected socket is needed");
  }
  const bool only_exports = !line.export_to.empty() && line.listen_fd < 0;
  if (line.listen_fd < 3 && !only_exports) {
    return Fail(Code::kInvalidArgument,
                "--listen-fd: a descriptor of a listening socket is needed");
  }
  for (const std::string* path : {&line.run_dir, &line.sandboxes, &line.containerd}) {
    if (!path->starts_with('/')) {
      return Fail(Code::kInvalidArgument, "'{}' is no absolute path", *path);
    }
  }
  if (line.containerd_ttrpc.empty()) {
    line.containerd_ttrpc = line.containerd + ".ttrpc";
  }
  return {};
}

}  // namespace

Result<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  // Boost's seam: it reports errors by exceptions.
  try {
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, Describe(line)), values);
    po::notify(values);
  } catch (const po::error& e) {
    return Fail(Code::kInvalidArgument, "{}", e.what());
  }
  GANTRY_CHECK_OK(Check(line));
  return line;
}

std::string Usage() {
  CommandLine line;
  std::ostringstream text;
  text << Describe(line);
  return text.str();
}

}  // namespace gantry::door
