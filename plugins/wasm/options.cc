// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/options.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/options/options.h>

#include "plugins/wasm/quantity.h"

namespace gantry::wasm {
namespace {

using Json = nlohmann::json;

/// "check option 'KEY': ...".
template <class T>
Result<T> OfKey(const std::string& key, Result<T> value) {
  if (!value) {
    return std::unexpected(std::move(value).error().Within(Format("check option '{}'", key)));
  }
  return value;
}

/// A number of bytes, or text such as "64Mi".
OptionSetter<Options> Bytes(uint64_t Options::* field) {
  return [field](Options& options, const std::string& key, const Json& value) -> Status {
    if (!value.is_string() && !value.is_number_unsigned()) {
      return options::WrongType(key, "a number of bytes, as 67108864 or \"64Mi\"", value);
    }
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    GANTRY_TRY(options.*field, OfKey(key, ParseQuantity(text)));
    return {};
  };
}

Status SetEngine(Options& options, const std::string& key, const Json& value) {
  GANTRY_TRY(std::string engine, options::TextOf(key, value));
  if (engine != "wasmtime" && engine != kWasmEdge) {
    return Fail(Code::kInvalidArgument, "check option '{}': must be wasmtime or wasmedge, is '{}'",
                key, engine.substr(0, 80));
  }
  options.engine = std::move(engine);
  return {};
}

Status SetNetwork(Options& options, const std::string& key, const Json& value) {
  GANTRY_TRY(const std::string text, options::TextOf(key, value));
  GANTRY_TRY(options.network, OfKey(key, ParseNetwork(text)));
  return {};
}

Status SetCompileSeconds(Options& options, const std::string& key, const Json& value) {
  constexpr int64_t kMostSeconds = 3600;
  GANTRY_TRY(const int64_t seconds, options::NumberOf(key, value, 1, kMostSeconds));
  options.compile_limit = std::chrono::seconds(seconds);
  return {};
}

Status SetCompile(Options& options, const std::string& key, const Json& value) {
  static const OptionTable<Options> table = {
      {"seconds", SetCompileSeconds},
      {"memory", Bytes(&Options::compile_memory)},
  };
  if (!value.is_object()) {
    return options::WrongType(key, "a table with seconds and memory", value);
  }
  for (const auto& [name, one] : value.items()) {
    const std::string full = Format("{}.{}", key, options::ShownKey(name));
    const auto setter = table.find(name);
    if (setter == table.end()) {
      return options::UnknownKey(full, "wasm");
    }
    GANTRY_CHECK_OK(setter->second(options, full, one));
  }
  return {};
}

const OptionTable<Options>& Table() {
  static const OptionTable<Options> table = {
      {"engine", SetEngine},
      {"cache_dir", options::AbsolutePath(&Options::cache_dir)},
      {"containerd_address", options::AbsolutePath(&Options::containerd_address)},
      {"max_module_bytes", Bytes(&Options::max_module_bytes)},
      {"compile", SetCompile},
      {"memory", Bytes(&Options::memory)},
      {"network", SetNetwork},
  };
  return table;
}

}  // namespace

Result<bool> ParseNetwork(const std::string& text) {
  if (text != "pod" && text != "none") {
    return Fail(Code::kInvalidArgument, "must be pod or none, is '{}'", text.substr(0, 80));
  }
  return text == "pod";
}

Result<Options> ParseOptions(const std::string& text, Options base,
                             std::vector<std::string>* unknown) {
  return options::Read(text, std::move(base), Table(), "wasm", unknown);
}

}  // namespace gantry::wasm
