// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/options.h"

#include <charconv>

namespace gantry::keeper {
namespace {

Result<int> ParseDescriptor(const std::string& text) {
  int fd = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || fd < 3) {
    return Fail(Code::kInvalidArgument, "read option --control-fd: '{}' is no descriptor", text);
  }
  return fd;
}

}  // namespace

Result<CommandLine> ParseCommandLine(std::span<const std::string> arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--foreground" || arguments[i] == "--check") {
      (arguments[i] == "--check" ? line.check : line.foreground) = true;
      continue;
    }
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (name != "--run-dir" && name != "--engine" && name != "--control-fd") {
      return Fail(Code::kInvalidArgument, "read option '{}': not known", arguments[i]);
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return Fail(Code::kInvalidArgument, "read option {}: it has no value", name);
    }
    const std::string value =
        equals == std::string::npos ? arguments[++i] : arguments[i].substr(equals + 1);
    if (name == "--control-fd") {
      GANTRY_TRY(line.control_fd, ParseDescriptor(value));
    } else {
      (name == "--run-dir" ? line.run_dir : line.engine) = value;
    }
  }
  return line;
}

}  // namespace gantry::keeper
