// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/commands.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>
#include <ranges>
#include <system_error>
#include <utility>

#include <boost/program_options.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/plugin_host.h"
#include "core/config/config.h"
#include "core/ctl/backend_tool.h"
#include "core/ctl/check.h"
#include "core/ctl/client.h"
#include "core/ctl/doctor.h"
#include "core/ctl/help.h"
#include "core/ctl/node.h"
#include "core/ctl/operator.h"
#include "core/ctl/show.h"
#include "core/link/paths.h"
#include "core/log/log.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

namespace po = boost::program_options;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Arguments {
  std::string command;
  std::vector<std::string> operands;
  std::string ns;
  std::string address;
  std::string config;
  std::string name;
  std::string engine;
  std::string keeper;
  bool json = false;
  bool costs = false;
  bool no_fallback = false;
  bool all = false;
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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

Result<std::string> Restart(const Arguments& arguments) { return Replace(arguments, ""); }

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

std::string DeletedText(const Arguments& arguments, const std::string& id, uint32_t status) {
  return arguments.json ? Format("{{\"id\":\"{}\",\"exit_status\":{}}}\n", id, status)
                        : Format("'{}' is deleted, its exit status was {}\n", id, status);
}

/// Ends all there is, the latest first: containers before the pod that they are in. One that
/// cannot be ended keeps none of the others; the first error tells.
Result<std::string> DeleteAll(const Arguments& arguments) {
  GANTRY_TRY(const auto keeper, QueryKeeper(arguments.address));
  std::string text;
  Status failed;
  for (const link::InstanceAdded& instance : keeper.instances | std::views::reverse) {
    const link::Announce& announced = instance.announce;
    if (!arguments.ns.empty() && announced.ns != arguments.ns) {
      continue;
    }
    const auto deleted = DeleteInstance(arguments.address, announced);
    if (deleted) {
      text += DeletedText(arguments, announced.id, deleted->status);
    } else if (failed) {
      failed = std::unexpected(Error(deleted.error()).Within(Format("delete '{}'", announced.id)));
    }
  }
  GANTRY_CHECK_OK(failed);
  return text;
}

/// Ends what no engine takes up. All else is ended by containerd, where that is there.
Result<std::string> Delete(const Arguments& arguments) {
  if (arguments.all == !arguments.operands.empty()) {
    return Fail(Code::kInvalidArgument, "delete: either an ID or --all");
  }
  if (arguments.all) {
    return DeleteAll(arguments);
  }
  const std::string& id = arguments.operands.front();
  GANTRY_TRY(const auto keeper, QueryKeeper(arguments.address));
  std::vector<link::Announce> found;
  for (const link::InstanceAdded& instance : keeper.instances) {
    if (instance.left_out && instance.announce.id == id &&
        (arguments.ns.empty() || instance.announce.ns == arguments.ns)) {
      found.push_back(instance.announce);
    }
  }
  if (found.empty()) {
    return Fail(Code::kNotFound,
                "delete '{}': nothing of that id is left out ('gantryctl status' shows what is); "
                "delete others with containerd's means",
                id);
  }
  if (found.size() > 1) {
    return Fail(Code::kInvalidArgument, "delete '{}': in several namespaces: say which, with -n",
                id);
  }
  GANTRY_TRY(const link::Deleted deleted, DeleteInstance(arguments.address, found.front()));
  return DeletedText(arguments, id, deleted.status);
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
};

constexpr Command kCommands[] = {
    {"ps", 0, 0, Ps},           {"inspect", 1, 1, Inspect}, {"status", 0, 0, ShowStatus},
    {"check", 0, 1, Check},     {"doctor", 0, 0, nullptr},  {"restart", 0, 0, Restart},
    {"upgrade", 0, 0, Upgrade}, {"delete", 0, 1, Delete},
};

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

// Parses; returns an exit code where there is nothing more to do.
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

}  // namespace

int RunCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  if ((words.size() == 3 || words.size() == 4) && words[0] == "--probe-plugin") {
    return backend::PluginHost::RunProbe(words[1], words[2],
                                         words.size() == 4 ? &words[3] : nullptr);
  }
  if (!words.empty() && !std::ranges::contains(kCommands, words.front(), &Command::name)) {
    if (const auto code = RunBackendTool(words, err)) {
      return *code;
    }
  }
  // What it finds is its output.
  log::SetLevel(LogLevel::kError);
  Arguments arguments;
  arguments.address = link::RunDir() + "/" + kSocketName;
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
    if (command.run == nullptr) {
      return Doctor(arguments, out);
    }
    const auto text = command.run(arguments);
    if (!text) {
      err << "gantryctl: " << text.error().message << "\n";
      return kFailed;
    }
    out << *text;
    return 0;
  }
  err << "gantryctl: there is no command '" << arguments.command << "'; see gantryctl --help\n";
  return kUsage;
}

}  // namespace gantry::ctl
