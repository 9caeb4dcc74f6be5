// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/misbehave/mischief.h"

#include <fcntl.h>

#include <cstdlib>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <gantry/unique_fd.h>

namespace gantry::misbehave {

void Mischief::AwaitGate() const {
  const UniqueFd opened(open(gate.c_str(), O_RDONLY | O_CLOEXEC));
}

void Mischief::Enter(std::string_view call) const {
  if (Is("block", call) || Is("watch", call)) {
    AwaitGate();
  } else if (Is("throw", call)) {
    throw std::runtime_error("out of luck in " + std::string(call));
  } else if (Is("throw-int", call)) {
    throw 42;
  } else if (Is("crash", call)) {
    std::abort();
  }
}

Mischief ReadMischief(const std::string& options_json) {
  const nlohmann::json options = nlohmann::json::parse(options_json, nullptr, false);
  Mischief mischief;
  if (options.is_object()) {
    mischief.mode = options.value("Mode", std::string());
    mischief.in = options.value("In", std::string());
    mischief.gate = options.value("Gate", std::string());
    mischief.done = options.value("Done", std::string());
  }
  return mischief;
}

std::string NoText() { return "\xff\xfe\x80 no text \xc3"; }

}  // namespace gantry::misbehave
