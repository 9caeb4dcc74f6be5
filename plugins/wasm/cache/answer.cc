// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/answer.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/compile/protocol.h"

namespace gantry::wasm {
namespace {

constexpr size_t kMaxShown = 512;
/// Of its standard error.
constexpr size_t kMaxErrors = 8192;
constexpr JsonLimits kAnswerJson = {.bytes = compile::kMaxAnswer, .depth = 4, .values = 16};

/// The answer's codes; of others none may be said of a module.
constexpr std::array<std::pair<std::string_view, Code>, 3> kCodes = {{
    {"INVALID_ARGUMENT", Code::kInvalidArgument},
    {"RESOURCE_EXHAUSTED", Code::kResourceExhausted},
    {"INTERNAL", Code::kInternal},
}};

std::string MiB(uint64_t bytes) { return Format("{} MiB", bytes >> 20); }

/// What Rust's and C++'s libraries write before they end the process.
bool IsOutOfMemory(std::string_view errors) {
  constexpr std::array<std::string_view, 4> kWords = {"memory allocation of", "bad_alloc",
                                                      "Cannot allocate memory", "out of memory"};
  return std::ranges::any_of(
      kWords, [&](std::string_view words) { return errors.find(words) != std::string_view::npos; });
}

std::unexpected<Error> TooMuch(std::string_view of, std::string_view limit) {
  return Fail(Code::kResourceExhausted,
              "compile the module: it takes more than {} of {}, which is the limit for its size",
              limit, of);
}

std::unexpected<Error> TooLong(const CompileBounds& bounds) {
  return Fail(Code::kResourceExhausted,
              "compile the module: it takes longer than {} s, which is the limit",
              std::chrono::duration<double>(bounds.time).count());
}

/// It was ended by a signal.
std::unexpected<Error> Killed(int signal, const CompileBounds& bounds, std::string_view errors) {
  if (signal == SIGKILL && errors.empty()) {
    // By the node's memory, an operator, or the end of the engine.
    return Fail(Code::kUnavailable,
                "compile the module: the compiler was killed by signal 9; where it was for the "
                "node's memory, the node's log says so");
  }
  if (IsOutOfMemory(errors)) {
    return TooMuch("memory", MiB(bounds.memory));
  }
  return Fail(Code::kInternal, "compile the module: the compiler crashed with signal {}: '{}'",
              signal, Printable(errors));
}

}  // namespace

std::string EndWords(const WaitStatus& status) {
  return WIFSIGNALED(status.raw) ? Format("was killed by signal {}", WTERMSIG(status.raw))
                                 : Format("ended with {}", WEXITSTATUS(status.raw));
}

std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxShown));
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

bool IsCompilerLine(std::string_view text) {
  return text.size() > 1 && text.ends_with('\n') &&
         std::ranges::all_of(text.substr(0, text.size() - 1),
                             [](char c) { return c > ' ' && c <= '~'; });
}

Result<Kind> ParseAnswer(std::string_view text) {
  const auto rubbish = [&] {
    return Fail(Code::kInternal, "compile the module: the compiler answers '{}'", Printable(text));
  };
  const nlohmann::json answer = ReadJson(text, kAnswerJson);
  if (!answer.is_object()) {
    return rubbish();
  }
  if (const auto kind = answer.find("kind"); kind != answer.end() && kind->is_string()) {
    const auto known = KindOf(kind->get_ref<const std::string&>());
    return known ? Result<Kind>(*known) : rubbish();
  }
  const auto error = answer.find("error");
  if (error == answer.end() || !error->is_object()) {
    return rubbish();
  }
  const auto code = error->find("code");
  const auto message = error->find("message");
  if (code == error->end() || !code->is_string() || message == error->end() ||
      !message->is_string()) {
    return rubbish();
  }
  const auto known = std::ranges::find(kCodes, code->get_ref<const std::string&>(),
                                       [](const auto& pair) { return pair.first; });
  if (known == kCodes.end()) {
    return rubbish();
  }
  return Fail(known->second, "compile the module: {}",
              Printable(message->get_ref<const std::string&>()));
}

Result<Kind> ReadAnswer(const CompileEnd& end, const CompileBounds& bounds) {
  GANTRY_TRY(const std::string errors, ReadAt(end.errors.get(), 0, kMaxErrors));
  GANTRY_TRY(const uint64_t bytes, FileSize(end.artifact.get()));
  if (!end.status) {
    return TooLong(bounds);
  }
  // A write beyond the limit fails, and what was written up to it stays.
  if (bytes >= bounds.output) {
    return TooMuch("output", MiB(bounds.output));
  }
  const int raw = end.status->raw;
  if (WIFSIGNALED(raw)) {
    return Killed(WTERMSIG(raw), bounds, errors);
  }
  if (WEXITSTATUS(raw) != 0) {
    return Fail(Code::kInternal, "compile the module: the compiler {}: '{}'", EndWords(*end.status),
                Printable(errors));
  }
  GANTRY_TRY(const std::string text, ReadAt(end.answer.get(), 0, compile::kMaxAnswer + 1));
  GANTRY_TRY(const Kind kind, ParseAnswer(text));
  if (bytes == 0) {
    return Fail(Code::kInternal,
                "compile the module: the compiler says that it is done and has "
                "written nothing");
  }
  return kind;
}

}  // namespace gantry::wasm
