// SPDX-License-Identifier: Apache-2.0
//
// The keeper does it: it starts the new engine and lets the old one go when that has taken over.
// What is told afterwards is what the new one says of itself, where it can be asked.
#include "core/ctl/upgrade.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/ctl/client.h"
#include "core/ctl/show.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

/// Errors: kFailedPrecondition where the new engine has crashed and is not there any more.
Status CheckStayed(const Arguments& arguments) {
  const auto keeper = QueryKeeper(arguments.address);
  if (!keeper || keeper->fell_back_from.empty()) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "upgrade the engine: '{}' took over and {}; '{}' is in charge again; --no-fallback "
              "keeps a new one come what may",
              keeper->fell_back_from, EndText(keeper->fell_back_wait_status), keeper->engine_path);
}

Result<std::string> Replace(const Arguments& arguments, const std::string& program) {
  GANTRY_TRY(const link::Upgraded done,
             UpgradeEngine(arguments.address, program, arguments.no_fallback));
  const int32_t pid = done.engine_pid;
  auto client = OperatorClient::Connect(arguments.address);
  const auto now =
      client ? client->EngineStatus() : Result<v1::StatusResponse>(std::unexpected(client.error()));
  if (!done.fallback.empty()) {
    GANTRY_CHECK_OK(CheckStayed(arguments));
  }
  if (arguments.json) {
    return Format("{{\"engine_pid\":{},\"version\":\"{}\"}}\n", pid, now ? now->version() : "");
  }
  const std::string then =
      done.fallback.empty()
          ? std::string()
          : Format(
                "if it crashes within the next seconds, '{}' takes its place again; "
                "'gantryctl status' says so\n",
                done.fallback);
  return (now ? Format("engine {}, version {}, is in charge: {} sandbox(es), {} container(s)\n",
                       pid, now->version(), now->sandboxes(), now->containers())
              : Format("engine {} is in charge\n", pid)) +
         then;
}

/// The absolute path of what somebody named. Errors: kInvalidArgument.
Result<std::string> ProgramNamed(const std::string& name, std::string_view what) {
  std::error_code error;
  std::string program = std::filesystem::absolute(name, error).string();
  if (!IsExecutable(program)) {
    return Fail(Code::kInvalidArgument, "upgrade the {}: '{}' is no executable file", what,
                program);
  }
  return program;
}

Result<std::string> ReplaceKeeper(const Arguments& arguments) {
  if (!arguments.engine.empty()) {
    return Fail(Code::kInvalidArgument,
                "upgrade: --keeper and --engine are two steps: the engine "
                "follows when the new keeper runs");
  }
  GANTRY_TRY(const std::string program, ProgramNamed(arguments.keeper, "keeper"));
  GANTRY_TRY(const int32_t pid, UpgradeKeeper(arguments.address, program));
  return arguments.json ? Format("{{\"keeper_pid\":{}}}\n", pid)
                        : Format("keeper {} is '{}' now\n", pid, program);
}

}  // namespace

Result<std::string> Restart(const Arguments& arguments) { return Replace(arguments, ""); }

Result<std::string> Upgrade(const Arguments& arguments) {
  if (!arguments.keeper.empty()) {
    return ReplaceKeeper(arguments);
  }
  if (arguments.engine.empty()) {
    return Replace(arguments, "");
  }
  GANTRY_TRY(const std::string program, ProgramNamed(arguments.engine, "engine"));
  return Replace(arguments, program);
}

}  // namespace gantry::ctl
