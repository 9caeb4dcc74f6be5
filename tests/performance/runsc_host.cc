// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/runsc_host.h"

#include <signal.h>

#include <filesystem>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "tests/harness/host.h"

namespace gantry::bench {
namespace {

using Json = nlohmann::json;

e2e::Program StartHost(const std::string& log) {
  e2e::Program::Options options;
  options.input = true;
  return {{std::filesystem::read_symlink("/proc/self/exe"), "--runsc-host", log}, options};
}

}  // namespace

RunscHost::RunscHost(Words runsc, const std::string& log)
    : runsc_(std::move(runsc)), log_(log), program_(StartHost(log)) {}

RunscHost::~RunscHost() {
  for (const pid_t pid : left_) {
    kill(pid, SIGKILL);
  }
}

Result<double> RunscHost::Ask(const Words& command, int count, int at_once) {
  Words argv = runsc_;
  argv.insert(argv.end(), command.begin(), command.end());
  program_.Write(Json{{"argv", argv}, {"count", count}, {"at_once", at_once}}.dump() + "\n");
  const std::optional<std::string> line = program_.ReadLine(e2e::kLong);
  const Json answer = Json::parse(line.value_or(""), nullptr, false);
  if (!answer.is_object()) {
    return Fail(Code::kInternal, "runsc {}: no answer from its host: {}", command.front(),
                program_.err());
  }
  if (const std::string failure = answer.value("failure", ""); !failure.empty()) {
    return Fail(Code::kInternal, "runsc {}: {}: {}", command.front(), failure, e2e::ReadText(log_));
  }
  return answer.value("value", 0.0);
}

Result<double> RunscHost::Run(const Words& command) { return Ask(command, 1, 1); }

Result<double> RunscHost::RunMany(const Words& command, int count, int at_once) {
  return Ask(command, count, at_once);
}

Result<pid_t> RunscHost::Leave(const Words& command) {
  GANTRY_TRY(const double pid, Ask(command, 1, 0));
  left_.push_back(static_cast<pid_t>(pid));
  return left_.back();
}

}  // namespace gantry::bench
