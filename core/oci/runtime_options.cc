// SPDX-License-Identifier: Apache-2.0
#include "core/oci/runtime_options.h"

#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "core/oci/toml.h"
#include "proto/containerd/runc.pb.h"
#include "proto/containerd/runtimeoptions.pb.h"

namespace gantry::oci {
namespace {

// A handler's table; far above what anybody writes by hand.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr std::string_view kHandlerKey = "Handler";

// Appends members to a JSON object, leaving out what is not set.
class Members {
 public:
  void Add(std::string_view key, bool value) {
    if (value) {
      Put(key, "true");
    }
  }

  void Add(std::string_view key, uint32_t value) {
    if (value != 0) {
      Put(key, std::to_string(value));
    }
  }

  void Add(std::string_view key, const std::string& value) {
    if (!value.empty()) {
      Put(key, Quote(value));
    }
  }

  std::string Take() { return std::move(text_) + "}"; }

 private:
  void Put(std::string_view key, std::string_view value) {
    text_ += (text_.size() > 1 ? "," : "") + Quote(key) + ":" + std::string(value);
  }

  std::string text_ = "{";
};

Result<RuntimeOptions> FromRunc(std::string_view value) {
  containerd::runc::v1::Options message;
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return Fail(Code::kInvalidArgument, "decode runtime options: malformed runc options");
  }
  Members out;
  out.Add("NoPivotRoot", message.no_pivot_root());
  out.Add("NoNewKeyring", message.no_new_keyring());
  out.Add("ShimCgroup", message.shim_cgroup());
  out.Add("IoUid", message.io_uid());
  out.Add("IoGid", message.io_gid());
  out.Add("BinaryName", message.binary_name());
  out.Add("Root", message.root());
  out.Add("CriuPath", message.criu_path());
  out.Add("SystemdCgroup", message.systemd_cgroup());
  out.Add("CriuImagePath", message.criu_image_path());
  out.Add("CriuWorkPath", message.criu_work_path());
  RuntimeOptions options;
  options.json = out.Take();
  options.task_api_address = message.task_api_address();
  options.task_api_version = message.task_api_version();
  return options;
}

// Takes `Handler` out of a table and puts the rest below what is there already.
Status AddTable(const std::string& table, std::string_view what, RuntimeOptions& options) {
  GANTRY_TRY(const Json document, Json::Parse(table, what));
  std::string handler;
  GANTRY_CHECK_OK(document[kHandlerKey].Read(handler));
  GANTRY_TRY(const std::string rest, WithoutMember(table, what, kHandlerKey));
  GANTRY_TRY(options.json, MergeObjects(rest, options.json));
  if (options.handler.empty()) {
    options.handler = std::move(handler);
  }
  return {};
}

Result<RuntimeOptions> FromRuntimeOptions(std::string_view value) {
  runtimeoptions::v1::Options message;
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return Fail(Code::kInvalidArgument, "decode runtime options: malformed runtimeoptions");
  }
  RuntimeOptions options;
  options.config_path = message.config_path();
  const std::string& body = message.config_body();
  if (body.size() > kMaxConfigBytes) {
    return Fail(Code::kInvalidArgument, "decode runtime options: longer than {} bytes",
                kMaxConfigBytes);
  }
  if (!body.empty()) {
    GANTRY_TRY(const std::string table, TomlToJson(body, "runtime options"));
    GANTRY_CHECK_OK(AddTable(table, "runtime options", options));
  }
  return options;
}

}  // namespace

Result<RuntimeOptions> DecodeRuntimeOptions(std::string_view type_url, std::string_view value) {
  const std::string_view type = type_url.substr(type_url.rfind('/') + 1);
  if (value.size() > kMaxConfigBytes * 2) {
    return Fail(Code::kInvalidArgument, "decode runtime options: longer than {} bytes",
                kMaxConfigBytes * 2);
  }
  if (type == "containerd.runc.v1.Options") {
    return FromRunc(value);
  }
  // The name it had in containerd before 1.7.
  if (type == "runtimeoptions.v1.Options" || type == "cri.runtimeoptions.v1.Options") {
    return FromRuntimeOptions(value);
  }
  return RuntimeOptions{};
}

Status ReadConfigPath(RuntimeOptions& options) {
  if (options.config_path.empty()) {
    return {};
  }
  GANTRY_TRY(const std::string text, ReadFile(options.config_path, kMaxConfigBytes));
  GANTRY_TRY(const std::string table, TomlToJson(text, options.config_path));
  return AddTable(table, options.config_path, options);
}

Result<std::string> MergeOptions(std::string_view base, std::string_view over) {
  return MergeObjects(base, over);
}

}  // namespace gantry::oci
