// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/guest.h"

#include <gantry_wasm_engine.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "plugins/wasm/program/directories.h"
#include "plugins/wasm/program/filter.h"
#include "plugins/wasm/program/listen.h"
#include "plugins/wasm/program/signals.h"

namespace gantry::wasm {
namespace {

// As long as the engine makes it. Memory that nobody touches unless it is needed.
constexpr size_t kMaxWhy = size_t{9} << 10;
char reason[kMaxWhy];

std::vector<const char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) {
    out.push_back(text.c_str());
  }
  return out;
}

// WASI has no working directory: of what a guest may know it by there is PWD alone.
std::vector<std::string> EnvironmentOf(const container::ProgramStart& start) {
  std::vector<std::string> env = start.spec.process.env;
  const std::string& cwd = start.spec.process.cwd;
  if (cwd != "/" &&
      !std::ranges::any_of(env, [](std::string_view one) { return one.starts_with("PWD="); })) {
    env.push_back("PWD=" + cwd);
  }
  return env;
}

Code CodeOf(int error) {
  switch (error) {
    case GANTRY_WASM_INVALID:
      return Code::kInvalidArgument;
    case GANTRY_WASM_MISSING:
      return Code::kFailedPrecondition;
    default:
      return Code::kInternal;
  }
}

void SayOnStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return;  // Nobody reads it, and there is no other place.
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
}

void Tell(std::string_view what) {
  SayOnStandardError(what);
  SayOnStandardError(std::string_view(reason, ::strnlen(reason, sizeof(reason))));
  SayOnStandardError("\n");
}

}  // namespace

std::vector<int> Guest::Descriptors() const {
  return words_.artifact < 0 ? std::vector<int>() : std::vector<int>{words_.artifact};
}

Status Guest::Prepare(const container::ProgramStart& start) {
  GANTRY_CHECK_OK(CheckWords(words_));
  GANTRY_CHECK_OK(EndOnSignals());
  ::prctl(PR_SET_NAME, engine_.program);  // For who lists processes; else it is the sealed copy's.
  return BringUp(start);
}

Status Guest::BringUp(const container::ProgramStart& start) {
  const UniqueFd artifact(start.descriptors.front());
  UniqueFd listener;
  if (words_.kind == GANTRY_WASM_PROXY) {
    GANTRY_TRY(listener, Listen(words_.listen));
  }
  const std::vector<Directory> directories = DirectoriesOf(start.spec);
  std::vector<gantry_wasm_preopen> preopens;
  preopens.reserve(directories.size());
  for (const Directory& one : directories) {
    preopens.push_back(
        {one.path.c_str(), one.path.c_str(), one.writable ? uint8_t{1} : uint8_t{0}});
  }
  const std::vector<std::string> env = EnvironmentOf(start);
  const std::vector<const char*> variables = PointersTo(env);
  const std::vector<const char*> args = PointersTo(start.spec.process.args);
  gantry_wasm_request request{};
  request.artifact = artifact.get();
  request.kind = static_cast<uint32_t>(words_.kind);
  request.entry = words_.entry ? words_.entry->c_str() : nullptr;
  request.args = args.data();
  request.arg_count = args.size();
  request.env = variables.data();
  request.env_count = variables.size();
  request.preopens = preopens.data();
  request.preopen_count = preopens.size();
  request.memory_bytes = words_.memory_bytes;
  request.network = words_.network ? 1 : 0;
  request.listener = listener.get();
  const int error = ::gantry_wasm_prepare(&request, &run_, reason, sizeof(reason));
  if (error != GANTRY_WASM_OK) {
    return Fail(CodeOf(error), "prepare '{}' in {}: {}", start.spec.process.args.front(),
                ::gantry_wasm_engine(),
                std::string_view(reason, ::strnlen(reason, sizeof(reason))));
  }
  static_cast<void>(listener.release());  // It is the engine's from now on.
  return {};
}

Result<std::vector<sock_filter>> Guest::Filter(const container::AfterFilter& after) {
  const bool knows_sockets = words_.kind != GANTRY_WASM_MODULE || engine_.modules_have_sockets;
  return FilterFor({.sockets = words_.network && knows_sockets,
                    .connections = words_.kind == GANTRY_WASM_PROXY,
                    .self = ::getpid(),
                    .seccomp_flags = after.seccomp_flags});
}

int Guest::Run() {
  uint32_t code = 0;
  switch (::gantry_wasm_run(run_, &code, reason, sizeof(reason))) {
    case GANTRY_WASM_EXITED:
      return static_cast<int>(code & 0xff);
    case GANTRY_WASM_TRAPPED:
      Tell("");
      return kTrapped;
    default:
      SayOnStandardError(engine_.program);
      Tell(": ");
      return kNotRun;
  }
}

}  // namespace gantry::wasm
