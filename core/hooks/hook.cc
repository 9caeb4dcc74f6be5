// SPDX-License-Identifier: Apache-2.0
//
// Reading hooks from config.json, and running one: its program is opened first and executed by
// that descriptor, its state comes on stdin as a sealed file, and what it says goes to a file in
// the bundle, of which the end is a part of the error. It ends within its own time-out and within
// the call's, of which some is left for what follows a hook that hangs.
#include "core/hooks/hook.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::hooks {
namespace {

using Json = nlohmann::json;

/// Of one without a timeout.
constexpr std::chrono::minutes kLongest{2};
/// Of a call, for what follows a hook that hangs.
constexpr std::chrono::seconds kReserve{5};
constexpr std::chrono::seconds kHookEndLimit{2};
constexpr size_t kMaxHookWords = 1024;

std::unexpected<Error> Bad(const std::string& kind, size_t index, std::string_view what) {
  return Fail(Code::kInvalidArgument, "check hooks.{}[{}]: {}", kind, index, what);
}

/// Absent: none.
std::optional<std::vector<std::string>> Texts(const Json& hook, const char* name) {
  const Json texts = hook.value(name, Json::array());
  std::vector<std::string> found;
  for (const Json& one : texts.is_array() ? texts : Json::array({0})) {
    if (!one.is_string()) {
      return std::nullopt;
    }
    found.push_back(one.get<std::string>());
  }
  return found;
}

Result<Hook> ReadHook(const std::string& kind, size_t index, const Json& json) {
  if (!json.is_object()) {
    return Bad(kind, index, "must be an object");
  }
  Hook hook{.kind = kind, .path = {}, .args = {}, .env = {}, .timeout = {}};
  const Json path = json.value("path", Json());
  hook.path = path.is_string() ? path.get<std::string>() : std::string();
  if (!hook.path.starts_with('/')) {
    return Bad(kind, index, "its path must be absolute");
  }
  auto args = Texts(json, "args");
  auto env = Texts(json, "env");
  if (!args || !env) {
    return Bad(kind, index, "args and env must be lists of strings");
  }
  hook.args = *std::move(args);
  hook.env = *std::move(env);
  if (const auto timeout = json.find("timeout"); timeout != json.end() && !timeout->is_null()) {
    constexpr int64_t kMostSeconds = 86400;
    if (!timeout->is_number_integer() || *timeout <= 0) {
      return Bad(kind, index, "its timeout must be a number of seconds above 0");
    }
    hook.timeout = std::chrono::seconds(std::min(timeout->get<int64_t>(), kMostSeconds));
  }
  return hook;
}

/// A script is executed by its path: what its interpreter opens would be closed by then.
Result<bool> IsScript(const UniqueFd& program) {
  std::array<char, 2> begin{};
  const ssize_t n = pread(program.get(), begin.data(), begin.size(), 0);
  if (n < 0) {
    return FailErrno(errno, "read it");
  }
  return std::string_view(begin.data(), static_cast<size_t>(n)) == "#!";
}

std::string What(const Hook& hook) { return Format("run hook '{}' ({})", hook.path, hook.kind); }

/// `argv[0]` is for programs that go by several names.
Status SetProgram(const Hook& hook, SpawnRequest& request) {
  UniqueFd program(open(hook.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!program || !IsExecutable(hook.path)) {
    return Fail(Code::kInvalidArgument, "{}: no such executable file on this node", What(hook));
  }
  request.argv = hook.args;
  if (request.argv.empty()) {
    request.argv.push_back(hook.path);
  }
  const auto script = IsScript(program);
  if (!script) {
    return std::unexpected(Error(script.error()).Within(What(hook)));
  }
  if (*script) {
    request.argv[0] = hook.path;
  } else if (request.argv[0] != hook.path) {
    request.program = std::move(program);
  }
  return {};
}

std::string LogPath(const std::string& bundle) { return bundle + "/hook.log"; }

/// A new, empty one.
Result<UniqueFd> OpenLog(const std::string& bundle) {
  const std::string path = LogPath(bundle);
  constexpr mode_t kMode = 0600;
  UniqueFd log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!log) {
    return FailErrno(errno, "open the log '{}'", path);
  }
  return log;
}

std::string Words(const std::string& bundle) {
  std::string words = ReadTail(LogPath(bundle), kMaxHookWords).value_or("");
  while (words.ends_with('\n')) {
    words.pop_back();
  }
  return words.empty() ? "it has said nothing" : words;
}

std::chrono::milliseconds LimitOf(const Hook& hook, const SandboxContext& context) {
  const auto left = context.TimeLeft();
  const auto usable = left - std::min<std::chrono::milliseconds>(kReserve, left / 4);
  return std::min<std::chrono::milliseconds>(hook.timeout.value_or(kLongest), usable);
}

}  // namespace

Result<Hooks> ReadHooks(const std::string& spec_json) {
  const Json spec = ReadJson(spec_json, kSpecJson);
  Hooks hooks;
  const auto all = spec.is_object() ? spec.find("hooks") : spec.end();
  if (!spec.is_object() || all == spec.end() || !all->is_object()) {
    return hooks;
  }
  for (const auto& [kind, list] :
       {std::pair("prestart", &Hooks::prestart), std::pair("createRuntime", &Hooks::create_runtime),
        std::pair("createContainer", &Hooks::create_container),
        std::pair("startContainer", &Hooks::start_container),
        std::pair("poststart", &Hooks::poststart), std::pair("poststop", &Hooks::poststop)}) {
    const Json of_kind = all->value(kind, Json::array());
    for (size_t i = 0; of_kind.is_array() && i < of_kind.size(); ++i) {
      GANTRY_TRY(Hook hook, ReadHook(kind, i, of_kind[i]));
      (hooks.*list).push_back(std::move(hook));
    }
  }
  return hooks;
}

Result<std::shared_ptr<HostProcess>> StartHook(const Hook& hook, const std::string& state,
                                               const HookPlace& place) {
  SpawnRequest request;
  GANTRY_CHECK_OK(SetProgram(hook, request));
  request.env = hook.env;
  request.cwd = place.bundle;
  request.tag = place.tag;
  GANTRY_TRY(UniqueFd input, SealedMemfd("state", state, MemfdUse::kRead));
  GANTRY_TRY(UniqueFd log, OpenLog(place.bundle));
  GANTRY_TRY(UniqueFd errors, log.Duplicate());
  request.fds.emplace_back(std::move(input), STDIN_FILENO);
  request.fds.emplace_back(std::move(log), STDOUT_FILENO);
  request.fds.emplace_back(std::move(errors), STDERR_FILENO);
  auto started = place.context.Spawn(std::move(request));
  if (!started) {
    IgnoreError(RemoveHookLog(place.bundle), "it goes with the bundle");
    return std::unexpected(std::move(started).error().Within(What(hook)));
  }
  return started;
}

Status AwaitHook(const Hook& hook, HostProcess& process, const HookPlace& place) {
  const auto limit = LimitOf(hook, place.context);
  const auto end = process.Wait(limit);
  if (!end) {
    EndHook(process);
  }
  const std::string words = end && end->raw == 0 ? std::string() : Words(place.bundle);
  IgnoreError(RemoveHookLog(place.bundle), "it goes with the bundle");
  if (!end) {
    return Fail(Code::kDeadlineExceeded, "{}: it was killed after {} ms: {}", What(hook),
                limit.count(), words);
  }
  if (end->raw != 0) {
    return Fail(Code::kInternal, "{}: it ended with {}: {}", What(hook), end->code(), words);
  }
  return {};
}

Status RemoveHookLog(const std::string& bundle) { return RemoveFile(LogPath(bundle)); }

void EndHook(HostProcess& process) {
  IgnoreError(process.Signal(SIGKILL), "it may have ended by itself");
  IgnoreError(process.Wait(kHookEndLimit), "it has been killed");
}

}  // namespace gantry::hooks
