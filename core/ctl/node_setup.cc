// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/node_setup.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/ctl/arguments.h"
#include "core/ctl/node_setup_arguments.h"
#include "core/ctl/output.h"
#include "core/log/log.h"
#include "core/setup/diff.h"
#include "core/setup/plan.h"
#include "core/setup/running.h"

namespace gantry::ctl {
namespace {

using setup::Plan;
using setup::Runtime;
using setup::Sandboxer;

constexpr std::string_view kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string SearchPath() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  const char* const path = std::getenv("PATH");
  return path == nullptr ? std::string(kUsualPath) : Format("{}:{}", path, kUsualPath);
}

/// All handlers of gantry.yaml, in the form of --handlers.
std::string AllHandlers(const config::Config& config) {
  std::string words;
  for (const auto& [name, handler] : config.handlers) {
    words += (words.empty() ? "" : ",") + name;
  }
  return words;
}

/// A path for containerd's configuration, to a shim that is there under each name.
Status CheckShim(const setup::Wanted& wanted) {
  if (wanted.shim.empty()) {
    return {};
  }
  if (!wanted.shim.starts_with('/') || wanted.shim.find_first_of("\"\\\n") != std::string::npos) {
    return Fail(Code::kInvalidArgument,
                "--shim '{}': not an absolute path that containerd can have", wanted.shim);
  }
  for (const Runtime& runtime : wanted.runtimes) {
    if (runtime.sandboxer == Sandboxer::kShim) {
      return Fail(Code::kInvalidArgument,
                  "--shim with sandboxer 'shim': containerd looks for the shim of such pods in its "
                  "PATH, whatever `runtime_path` says; link it there, and leave out --shim");
    }
    const std::string shim = setup::ShimOf(wanted, runtime.handler);
    if (!IsExecutable(shim)) {
      return Fail(
          Code::kNotFound,
          "--shim: '{}' is no program; of another handler than the default one it is a link: "
          "ln -s containerd-shim-gantry-v1 '{}'",
          shim, shim);
    }
  }
  return {};
}

Result<setup::Wanted> WantedOf(const NodeSetupArguments& arguments, const config::Config& config) {
  setup::Wanted wanted;
  GANTRY_TRY(const Sandboxer sandboxer, setup::ParseSandboxer(arguments.sandboxer));
  GANTRY_TRY(wanted.runtimes,
             setup::ParseRuntimes(
                 arguments.handlers.empty() ? AllHandlers(config) : arguments.handlers, sandboxer));
  wanted.default_handler = config.default_handler;
  wanted.shim = arguments.shim;
  wanted.grpc_address = config.grpc.address;
  if (wanted.HasController() && wanted.grpc_address.empty()) {
    return Fail(
        Code::kFailedPrecondition,
        "sandboxer 'controller': gantry has no gRPC server: set `grpc.address` in '{}', then "
        "gantryctl restart",
        config.file);
  }
  GANTRY_CHECK_OK(CheckShim(wanted));
  return wanted;
}

Result<std::string> ContainerdOf(const NodeSetupArguments& arguments, const setup::Layout& layout) {
  if (!arguments.containerd.empty()) {
    if (!IsExecutable(arguments.containerd)) {
      return Fail(Code::kNotFound, "--containerd '{}': no program", arguments.containerd);
    }
    return arguments.containerd;
  }
  if (!layout.containerd.empty() && IsExecutable(layout.containerd)) {
    return layout.containerd;
  }
  auto found = FindInPath(SearchPath(), "containerd");
  if (!found) {
    return Fail(
        Code::kNotFound,
        "there is no containerd in PATH, and how to configure it depends on its release: name "
        "it with --containerd");
  }
  return found;
}

/// What gantry itself lacks for these runtimes.
void AddGantryNotes(const setup::Wanted& wanted, const config::Config& config, Plan& plan) {
  for (const Runtime& runtime : wanted.runtimes) {
    if (!config.handlers.contains(runtime.handler)) {
      plan.notes.push_back(
          Format("'{}' has no handler '{}' yet: add it (`handlers: {{{}: {{backend: {}}}}}`), then "
                 "gantryctl restart",
                 config.file, runtime.handler, runtime.handler, runtime.handler));
    }
    const std::string shim = setup::ShimOf(wanted, runtime.handler);
    if (wanted.shim.empty() && !FindInPath(SearchPath(), shim)) {
      plan.notes.push_back(Format("'{}' is not in PATH, where containerd looks for it", shim));
    }
  }
}

std::string_view ActionOf(const setup::FileChange& change) {
  return !change.before ? "created" : !change.after ? "removed" : "changed";
}

std::string PlanText(const Plan& plan, const NodeSetupArguments& arguments,
                     const setup::Layout& layout) {
  std::string text;
  for (const setup::FileChange& change : plan.changes) {
    text += setup::UnifiedDiff(change.path, change.before, change.after);
  }
  if (plan.changes.empty()) {
    text += arguments.undo ? "nothing to take back\n"
                           : Format("nothing to do: '{}' has it already\n", plan.place);
  }
  for (const setup::FileChange& change : plan.changes) {
    text +=
        Format("{}'{}' {}\n", arguments.dry_run ? "would be: " : "", change.path, ActionOf(change));
  }
  for (const std::string& note : plan.notes) {
    text += "note: " + note + "\n";
  }
  if (!plan.changes.empty() && !arguments.dry_run) {
    text += Format("containerd knows it when it was restarted, which no pod notices: {}\n",
                   layout.restart);
  }
  return text;
}

std::string PlanJson(const Plan& plan, const NodeSetupArguments& arguments,
                     const setup::Layout& layout) {
  JsonWriter json;
  json.Object()
      .Member("dry_run", arguments.dry_run)
      .Member("place", plan.place)
      .Member("restart", plan.changes.empty() ? "" : layout.restart);
  json.Key("files").Array();
  for (const setup::FileChange& change : plan.changes) {
    json.Object().Member("path", change.path).Member("action", ActionOf(change)).End();
  }
  json.End().Key("notes").Array();
  for (const std::string& note : plan.notes) {
    json.Value(note);
  }
  return json.End().End().Take();
}

/// The files are as asked for, and containerd has read them.
Result<std::string> Check(const Plan& plan, const setup::Layout& layout) {
  if (!plan.changes.empty()) {
    return Fail(Code::kFailedPrecondition,
                "'{}' is not what these options say: gantryctl node-setup, with --dry-run to look "
                "first",
                plan.changes.front().path);
  }
  GANTRY_TRY(const std::string running, setup::CheckRunning(layout, plan.place));
  return Format("'{}' is in order\n{}", plan.place, running);
}

Result<std::string> Run(const NodeSetupArguments& arguments) {
  GANTRY_TRY(setup::Layout layout,
             setup::FindLayout("", arguments.distribution, arguments.containerd_config));
  if (!arguments.socket.empty()) {
    layout.socket = arguments.socket;
  }
  Plan plan;
  if (arguments.undo) {
    GANTRY_TRY(plan, setup::PlanUndo(layout));
  } else {
    GANTRY_TRY(config::Config config, config::Load(arguments.config));
    // Where there is no file, it is where one belongs.
    config.file = arguments.config;
    GANTRY_TRY(const setup::Wanted wanted, WantedOf(arguments, config));
    if (arguments.runtime_classes) {
      return setup::RuntimeClassesOf(wanted);
    }
    GANTRY_TRY(const std::string program, ContainerdOf(arguments, layout));
    GANTRY_TRY(plan, setup::PlanSetup(layout, wanted, program, setup::RunProgram));
    AddGantryNotes(wanted, config, plan);
  }
  if (arguments.check) {
    return Check(plan, layout);
  }
  if (!arguments.dry_run && !plan.changes.empty()) {
    GANTRY_CHECK_OK(setup::CarryOut(plan));
  }
  return arguments.json ? PlanJson(plan, arguments, layout) : PlanText(plan, arguments, layout);
}

}  // namespace

int NodeSetup(const std::vector<std::string>& words, const std::string& config, std::ostream& out,
              std::ostream& err) {
  log::SetLevel(LogLevel::kError);
  NodeSetupArguments arguments;
  arguments.config = config;
  if (const auto code = ParseNodeSetup(words, arguments, out, err)) {
    return *code;
  }
  if (geteuid() != 0 && !arguments.dry_run && !arguments.check && !arguments.runtime_classes) {
    err << "gantryctl: node-setup changes files of root: run it as root, or with --dry-run\n";
    return kFailed;
  }
  const auto text = Run(arguments);
  if (!text) {
    err << "gantryctl: " << text.error().message << "\n";
    return kFailed;
  }
  out << *text;
  return 0;
}

}  // namespace gantry::ctl
