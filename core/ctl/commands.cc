// SPDX-License-Identifier: Apache-2.0
//
// Which commands there are, and those that only ask and show. A command gives its output as text
// and fails with an error, which is printed with exit code 1; `doctor` alone has a code of its own,
// for what it finds. Commands that change something are in upgrade.cc and delete.cc.
#include "core/ctl/commands.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/plugin_host.h"
#include "core/config/config.h"
#include "core/ctl/arguments.h"
#include "core/ctl/backend_tool.h"
#include "core/ctl/check.h"
#include "core/ctl/client.h"
#include "core/ctl/delete.h"
#include "core/ctl/doctor.h"
#include "core/ctl/dump.h"
#include "core/ctl/events.h"
#include "core/ctl/live.h"
#include "core/ctl/logs.h"
#include "core/ctl/node.h"
#include "core/ctl/node_setup.h"
#include "core/ctl/output.h"
#include "core/ctl/show.h"
#include "core/ctl/top.h"
#include "core/ctl/trace.h"
#include "core/ctl/upgrade.h"
#include "core/link/operator_api.h"
#include "core/link/paths.h"
#include "core/log/log.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

std::string DefaultConfig() {
  const char* const path = std::getenv("GANTRY_CONFIG");
  return path == nullptr || *path == '\0' ? std::string(config::kDefaultPath) : path;
}

Result<std::string> Ps(const Arguments& arguments) {
  GANTRY_TRY(auto client, OperatorClient::Connect(arguments.address));
  GANTRY_TRY(const auto list, client.List(arguments.ns));
  if (arguments.json) {
    return ListJson(list);
  }
  return arguments.costs ? CostTable(list) : ListTable(list, NowNs());
}

Result<std::string> Inspect(const Arguments& arguments) {
  GANTRY_TRY(auto client, OperatorClient::Connect(arguments.address));
  GANTRY_TRY(const auto answer, client.Inspect(arguments.ns, arguments.operands.at(0)));
  return arguments.json ? InspectJson(answer) : InspectText(answer, NowNs());
}

Result<std::string> ShowStatus(const Arguments& arguments) {
  GANTRY_TRY(auto client, OperatorClient::Connect(arguments.address));
  GANTRY_TRY(const auto answer, client.EngineStatus());
  GANTRY_TRY(const auto keeper, QueryKeeper(arguments.address));
  return arguments.json ? StatusJson(answer, keeper) : StatusText(answer, keeper, NowNs());
}

Result<std::string> Check(const Arguments& arguments) {
  if (arguments.operands.empty() && !Exists(arguments.config)) {
    return Format("{}: absent, so all is at its default\n", arguments.config);
  }
  const std::string file =
      arguments.operands.empty() ? arguments.config : arguments.operands.front();
  if (LooksLikePlugin(file)) {
    GANTRY_TRY(const std::string self, ReadLink("/proc/self/exe"));
    config::Config config = config::Defaults();
    if (Exists(arguments.config)) {
      GANTRY_TRY(config, config::Load(arguments.config));
    }
    return CheckPlugin(self, file, arguments.name, config);
  }
  if (!Exists(file)) {
    return Fail(Code::kNotFound, "check configuration '{}': no such file", file);
  }
  GANTRY_TRY(const config::Config config, config::Load(file));
  return CheckConfig(config, Node::Here(config));
}

// What the engine says about itself, where it can be asked.
void AskEngine(const std::string& address, std::vector<Finding>& findings) {
  auto client = OperatorClient::Connect(address);
  auto status =
      client ? client->EngineStatus() : Result<v1::StatusResponse>(std::unexpected(client.error()));
  if (!status) {
    findings.push_back({"gantry", "optional", "a running engine", status.error().message});
    return;
  }
  findings.push_back({"gantry", "ok", "a running engine",
                      Format("version {}, pid {}", status->version(), status->engine_pid())});
  for (const v1::BackendStatus& backend : status->backends()) {
    if (!backend.error().empty()) {
      findings.push_back({backend.name(), "missing", "loaded by the engine", backend.error()});
    }
  }
}

int Doctor(const Arguments& arguments, std::ostream& out) {
  std::vector<Finding> findings;
  auto config = config::Load(arguments.config);
  if (!config) {
    findings.push_back({"gantry", "missing", "a correct configuration", config.error().message});
    config = config::Defaults();
  }
  for (Finding& finding : Examine(Node::Here(*config), *config)) {
    findings.push_back(std::move(finding));
  }
  AskEngine(arguments.address, findings);
  out << (arguments.json ? FindingsJson(findings) : FindingsTable(findings));
  return Healthy(findings) ? 0 : kFailed;
}

struct Command {
  std::string_view name;
  size_t least_operands;
  size_t most_operands;
  Result<std::string> (*run)(const Arguments&);
  /// Instead, where it writes as it goes.
  Status (*show)(const Arguments&, const Output&) = nullptr;
};

constexpr Command kCommands[] = {
    {"ps", 0, 0, Ps},
    {"inspect", 1, 1, Inspect},
    {"status", 0, 0, ShowStatus},
    {"top", 0, 0, nullptr, ShowTop},
    {"events", 0, 1, nullptr, ShowEvents},
    {"logs", 0, 1, Logs},
    {"trace", 0, 1, ShowTrace},
    {"check", 0, 1, Check},
    {"doctor", 0, 0, nullptr},
    {"restart", 0, 0, Restart},
    {"upgrade", 0, 0, Upgrade},
    {"delete", 0, 1, Delete},
    {"debug", 1, 2, Debug},
};

/// Its output, or why there is none.
Status Run(const Command& command, const Arguments& arguments, std::ostream& out,
           std::ostream& err) {
  if (command.show != nullptr) {
    return command.show(arguments, {out, err, &out == &std::cout && isatty(STDOUT_FILENO) == 1});
  }
  GANTRY_TRY(const std::string text, command.run(arguments));
  out << text;
  return {};
}

}  // namespace

int RunCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  if ((words.size() == 3 || words.size() == 4) && words[0] == "--probe-plugin") {
    return backend::PluginHost::RunProbe(words[1], words[2],
                                         words.size() == 4 ? &words[3] : nullptr);
  }
  if (!words.empty() && words.front() == kNodeSetup) {
    return NodeSetup({words.begin() + 1, words.end()}, DefaultConfig(), out, err);
  }
  if (!words.empty() && !std::ranges::contains(kCommands, words.front(), &Command::name)) {
    if (const auto code = RunBackendTool(words, err)) {
      return *code;
    }
  }
  // What it finds is its output.
  log::SetLevel(LogLevel::kError);
  Arguments arguments;
  arguments.address = link::RunDir() + "/" + operator_api::kSocketName;
  arguments.config = DefaultConfig();
  if (const auto code = Parse(words, arguments, out, err)) {
    return *code;
  }
  for (const Command& command : kCommands) {
    const size_t operands = arguments.operands.size();
    if (command.name != arguments.command) {
      continue;
    }
    if (operands < command.least_operands || operands > command.most_operands) {
      err << "gantryctl: '" << command.name << "' takes " << command.most_operands
          << " argument(s); see gantryctl --help\n";
      return kUsage;
    }
    if (command.run == nullptr && command.show == nullptr) {
      return Doctor(arguments, out);
    }
    const Status done = Run(command, arguments, out, err);
    if (!done) {
      err << "gantryctl: " << done.error().message << "\n";
      return kFailed;
    }
    return 0;
  }
  err << "gantryctl: there is no command '" << arguments.command << "'; see gantryctl --help\n";
  return kUsage;
}

}  // namespace gantry::ctl
