// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/words.h"

#include <gantry_wasm_engine.h>

#include <gantry/number.h>
#include <gantry/toolkit/init/gated_program.h>

namespace gantry::wasm {
namespace {

std::unexpected<Error> Wrong(const std::string& name, const std::string& value, const char* why) {
  return Fail(Code::kInvalidArgument, "read arguments: '{}={}': {}", name, value, why);
}

Result<int> KindOf(const std::string& name, const std::string& value) {
  if (value == "module") {
    return GANTRY_WASM_MODULE;
  }
  if (value == "command") {
    return GANTRY_WASM_COMMAND;
  }
  if (value == "proxy") {
    return GANTRY_WASM_PROXY;
  }
  return Wrong(name, value, "not module, command or proxy");
}

Status TakeNetwork(const std::string& name, const std::string& value, Words& out) {
  if (value != "pod" && value != "none") {
    return Wrong(name, value, "not pod or none");
  }
  out.network = value == "pod";
  return {};
}

Status TakeMemory(const std::string& name, const std::string& value, Words& out) {
  const auto bytes = ParseNumber(value);
  if (!bytes || *bytes <= 0) {
    return Wrong(name, value, "not a number of bytes above 0");
  }
  out.memory_bytes = static_cast<uint64_t>(*bytes);
  return {};
}

}  // namespace

Result<bool> TakeWord(const std::string& name, const std::string& value, Words& out) {
  if (name == "--artifact") {
    GANTRY_TRY(out.artifact, init::DescriptorIn(name, value));
  } else if (name == "--kind") {
    GANTRY_TRY(out.kind, KindOf(name, value));
  } else if (name == "--entry") {
    if (value.empty() || value.contains('\0')) {
      return Wrong(name, value, "not the name of a function");
    }
    out.entry = value;
  } else if (name == "--memory") {
    GANTRY_CHECK_OK(TakeMemory(name, value, out));
  } else if (name == "--network") {
    GANTRY_CHECK_OK(TakeNetwork(name, value, out));
  } else if (name == "--listen") {
    out.listen = value;
  } else {
    return false;
  }
  return true;
}

Status CheckWords(const Words& words) {
  if (words.artifact < 0 || words.kind < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: no --artifact, or no --kind");
  }
  if (words.entry && words.kind != GANTRY_WASM_MODULE) {
    return Fail(Code::kInvalidArgument,
                "read arguments: --entry='{}': only of a module a function can be chosen",
                *words.entry);
  }
  return {};
}

}  // namespace gantry::wasm
