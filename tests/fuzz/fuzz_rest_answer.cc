// SPDX-License-Identifier: Apache-2.0
//
// An answer of a VMM with a REST API, in any portions.
#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

#include "plugins/vmm/hypervisor/rest/http.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

using vmm::HttpAnswer;
using vmm::HttpAnswerReader;

/// What is made of it when it comes in such portions, and how it ends: nothing where it is not
/// whole, or is refused.
std::optional<HttpAnswer> ReadIn(std::string_view input, size_t portion) {
  HttpAnswerReader reader;
  while (!input.empty()) {
    reader.buffer() += input.substr(0, portion);
    input.remove_prefix(std::min(portion, input.size()));
    const auto answer = reader.Next();
    if (!answer) {
      Require(answer.error().code == Code::kDataLoss, "what is refused is no answer");
      return std::nullopt;
    }
    if (*answer) {
      return **answer;
    }
  }
  return std::nullopt;
}

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t portion = size_t{TakeByte(input)} + 1;
  const auto pieces = ReadIn(input, 1);
  const auto answer = ReadIn(input, portion);
  if (!answer) {
    return;
  }
  Require(answer->status >= 200 && answer->status < 600, "a status ends a request");
  Require(answer->body.size() <= vmm::kMaxHttpBody, "a body is bounded");
  Require(pieces && pieces->body == answer->body && pieces->status == answer->status,
          "an answer is the same in any portions");
  ReadJson(answer->body, {.bytes = vmm::kMaxHttpBody, .depth = 32, .values = 20'000});
}

}  // namespace gantry::fuzz
