// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/options.h"

#include <charconv>
#include <map>

namespace gantry::keeper {
namespace {

Result<int> ParseDescriptor(const std::string& option, const std::string& text) {
  int fd = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || fd < 3) {
    return Fail(Code::kInvalidArgument, "read option {}: '{}' is no descriptor", option, text);
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
    const std::map<std::string, int*> descriptors = {{"--control-fd", &line.control_fd},
                                                     {"--check-state-fd", &line.check_state_fd},
                                                     {"--state-fd", &line.state_fd},
                                                     {"--previous-fd", &line.previous_fd}};
    const auto descriptor = descriptors.find(name);
    if (name != "--run-dir" && name != "--engine" && descriptor == descriptors.end()) {
      return Fail(Code::kInvalidArgument, "read option '{}': not known", arguments[i]);
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return Fail(Code::kInvalidArgument, "read option {}: it has no value", name);
    }
    const std::string value =
        equals == std::string::npos ? arguments[++i] : arguments[i].substr(equals + 1);
    if (descriptor != descriptors.end()) {
      GANTRY_TRY(*descriptor->second, ParseDescriptor(name, value));
    } else {
      (name == "--run-dir" ? line.run_dir : line.engine) = value;
    }
  }
  return line;
}

}  // namespace gantry::keeper
