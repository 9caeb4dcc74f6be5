// SPDX-License-Identifier: Apache-2.0
//
// The head of a file of the cache of compiled modules, and what the compiler answers.
#include <string>

#include "plugins/wasm/cache/answer.h"
#include "plugins/wasm/cache/entry.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

void LookAtHeader(std::string_view input) {
  const Result<wasm::EntryHeader> header = wasm::EntryHeader::Decode(input);
  if (!header) {
    Require(header.error().code == Code::kDataLoss, "whatever is wrong is told as damage");
    return;
  }
  Require(header->length > 0 && header->length <= wasm::EntryHeader::kMaxContent,
          "its length is bounded");
  Require(header->Encode() == input.substr(0, wasm::EntryHeader::kSize),
          "there is one way to write a header");
}

void LookAtAnswer(std::string_view input) {
  const Result<wasm::Kind> kind = wasm::ParseAnswer(input);
  Require(kind || kind.error().code == Code::kInvalidArgument ||
              kind.error().code == Code::kResourceExhausted || kind.error().code == Code::kInternal,
          "the compiler chooses among three errors");
  Require(kind || kind.error().message.size() < 1024, "its words are bounded");
  wasm::IsCompilerLine(input);
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (TakeByte(input) % 2 == 0) {
    LookAtHeader(input);
  } else {
    LookAtAnswer(input);
  }
}

}  // namespace gantry::fuzz
