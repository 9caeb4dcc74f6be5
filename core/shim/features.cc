// SPDX-License-Identifier: Apache-2.0
//
// `-info` has to answer whatever happens, so nothing here is an error: what `gantryd --features`
// does not say in time is told as no features, with the reason in an annotation. Its answer is
// taken only with the newline at its end.
#include "core/shim/features.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <gantry/toolkit/process/ask_program.h>

#include "core/link/paths.h"
#include "core/shim/bootstrap.h"

namespace gantry::shim {
namespace {

/// gantryd gives half a MiB at most.
constexpr size_t kMaxAnswerBytes = size_t{1} << 20;
/// More than the backend has for its part.
constexpr std::chrono::seconds kLimit(4);
constexpr size_t kMaxReasonBytes = 1024;

/// For a field that must be UTF-8.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kMaxReasonBytes));
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

Result<std::string> Ask(std::string_view handler, const Result<std::string>& input) {
  if (!input) {
    return std::unexpected(input.error());
  }
  Bootstrap bootstrap = ParseBootstrap(*input, "", "");
  ProgramQuestion question;
  GANTRY_TRY(question.program, link::FindProgram("gantryd"));
  question.arguments = {"--features"};
  if (!handler.empty()) {
    question.arguments.insert(question.arguments.end(), {"--handler", std::string(handler)});
  }
  if (!bootstrap.options_type_url.empty()) {
    question.arguments.insert(question.arguments.end(),
                              {"--options-type", std::move(bootstrap.options_type_url)});
  }
  question.input = std::move(bootstrap.options);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    question.environment.emplace_back(*entry);
  }
  question.max_bytes = kMaxAnswerBytes;
  question.limit = kLimit;
  return AskProgram(question);
}

}  // namespace

HandlerFeatures AskFeatures(std::string_view handler, const Result<std::string>& input) {
  auto answer = Ask(handler, input);
  if (!answer) {
    return {.json = {}, .why_not = Shown(answer.error().message)};
  }
  if (!answer->ends_with('\n')) {
    return {.json = {}, .why_not = "'gantryd --features' gave no whole answer within 4 s"};
  }
  answer->pop_back();
  if (answer->empty() || answer->starts_with('{')) {
    return {.json = std::move(*answer), .why_not = {}};
  }
  return {.json = {}, .why_not = Shown(*answer)};
}

}  // namespace gantry::shim
