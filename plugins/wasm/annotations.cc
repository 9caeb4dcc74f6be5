// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/annotations.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/json/json_member.h>

#include "plugins/wasm/quantity.h"

namespace gantry::wasm {
namespace {

constexpr std::string_view kPrefix = "io.gantry.wasm/";
constexpr const char* kHandler = "run.oci.handler";
constexpr const char* kVariant = "module.wasm.image/variant";
constexpr std::string_view kListenVariable = "GANTRY_WASM_LISTEN=";
/// Of a value, as errors show it.
constexpr size_t kShownBytes = 80;

std::unexpected<Error> WrongValue(std::string_view key, const std::string& value, Error why) {
  return Fail(Code::kInvalidArgument, "annotation '{}', '{}': {}", key,
              value.substr(0, kShownBytes), why.message);
}

Result<Claim> ClaimOfHandler(const std::string& value) {
  for (const std::string_view engine : {"wasm", "wasmtime", "wasmedge", "wasmer", "wamr"}) {
    if (value == engine) {
      return Claim::kWasm;
    }
    if (value == Format("{}-smart", engine)) {
      return Claim::kSmart;
    }
  }
  return Fail(Code::kUnimplemented,
              "annotation '{}', '{}': no handler of this backend; wasm and wasm-smart are",
              kHandler, value.substr(0, kShownBytes));
}

Result<Claim> ClaimOfVariant(const std::string& value) {
  if (value == "compat") {
    return Claim::kWasm;
  }
  if (value == "compat-smart") {
    return Claim::kSmart;
  }
  return Fail(Code::kInvalidArgument, "annotation '{}', '{}': must be compat or compat-smart",
              kVariant, value.substr(0, kShownBytes));
}

/// One of `io.gantry.wasm/`.
Status SetOne(Settings& settings, std::string_view name, const std::string& value) {
  if (name == "memory") {
    GANTRY_TRY(settings.memory, ParseQuantity(value));
  } else if (name == "network") {
    GANTRY_TRY(settings.network, ParseNetwork(value));
  } else if (name == "listen") {
    GANTRY_CHECK_OK(CheckListen(value));
    settings.listen = value;
  } else if (name == "entry") {
    if (value.empty() || value.contains('\0')) {
      return Fail(Code::kInvalidArgument, "must be the name of an exported function");
    }
    settings.entry = value;
  } else {
    return Fail(Code::kInvalidArgument,
                "there is none of that name; memory, network, listen and "
                "entry are known");
  }
  return {};
}

/// `linux.resources.memory.limit`; 0: none.
uint64_t MemoryLimitOf(const oci::Spec& spec) {
  const std::string_view memory = JsonMember(spec.resources_json, "memory");
  const auto limit = ParseNumber(JsonMember(memory, "limit"));
  return limit && *limit > 0 ? static_cast<uint64_t>(*limit) : 0;
}

Status SetListenOfEnvironment(Settings& settings, const oci::ProcessSpec& process) {
  for (const std::string& variable : process.env) {
    if (!variable.starts_with(kListenVariable)) {
      continue;
    }
    const std::string value = variable.substr(kListenVariable.size());
    if (Status right = CheckListen(value); !right) {
      return Fail(Code::kInvalidArgument, "variable 'GANTRY_WASM_LISTEN', '{}': {}",
                  value.substr(0, kShownBytes), right.error().message);
    }
    settings.listen = value;
  }
  return {};
}

bool IsAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  if (text.starts_with('[') && text.ends_with(']')) {
    return inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), address.data()) == 1;
  }
  return inet_pton(AF_INET, text.c_str(), address.data()) == 1;
}

}  // namespace

Status CheckListen(const std::string& text) {
  constexpr int64_t kMostPort = 65535;
  const size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos
                        ? Result<int64_t>(0)
                        : ParseNumber(std::string_view(text).substr(colon + 1));
  if (colon == std::string::npos || !IsAddress(text.substr(0, colon)) || !port || *port < 1 ||
      *port > kMostPort) {
    return Fail(Code::kInvalidArgument, "must be ADDRESS:PORT, as 0.0.0.0:8080 or [::]:8080");
  }
  return {};
}

Result<Claim> ClaimOf(const oci::Spec& spec) {
  if (spec.annotation("io.kubernetes.cri.container-type") == "sandbox") {
    return Claim::kNative;
  }
  if (const auto handler = spec.annotations.find(kHandler); handler != spec.annotations.end()) {
    return ClaimOfHandler(handler->second);
  }
  if (const auto variant = spec.annotations.find(kVariant); variant != spec.annotations.end()) {
    return ClaimOfVariant(variant->second);
  }
  return Claim::kNone;
}

Result<Settings> SettingsOf(const oci::Spec& spec, const oci::ProcessSpec& process,
                            const Options& options) {
  const uint64_t limit = MemoryLimitOf(spec);
  Settings settings{.memory = limit != 0 ? limit : options.memory,
                    .network = options.network,
                    .listen = {},
                    .entry = {}};
  for (const auto& [key, value] : spec.annotations) {
    if (!key.starts_with(kPrefix)) {
      continue;
    }
    if (Status set = SetOne(settings, key.substr(kPrefix.size()), value); !set) {
      return WrongValue(key.substr(0, kShownBytes), value, std::move(set).error());
    }
  }
  // The nearer: an annotation of a pod is that of all its containers.
  GANTRY_CHECK_OK(SetListenOfEnvironment(settings, process));
  return settings;
}

}  // namespace gantry::wasm
