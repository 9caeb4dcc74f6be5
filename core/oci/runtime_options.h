// SPDX-License-Identifier: Apache-2.0
//
// The runtime options that a client sends with a container, in one form.
//
// They arrive as `containerd.runc.v1.Options`, or as `runtimeoptions.v1.Options`
// whose body is the handler's TOML table. A backend sees neither: it gets one
// JSON object with the keys of the TOML table (`BinaryName`, `SystemdCgroup`,
// ...), so a node can move over by changing its runtime_type alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::oci {

struct RuntimeOptions {
  /// A JSON object. From the runc message only fields that are set, under
  /// NoPivotRoot NoNewKeyring ShimCgroup IoUid IoGid BinaryName Root CriuPath
  /// SystemdCgroup CriuImagePath CriuWorkPath; from TOML the whole table but `Handler`.
  std::string json = "{}";
  /// Which handler of the configuration is meant: `Handler` in the TOML table.
  std::string handler;
  /// A file with the TOML table instead of one in the message; not read yet.
  std::string config_path;
  /// Where CRI in sandboxer mode says the task service is.
  std::string task_api_address;
  uint32_t task_api_version = 0;
};

/// What an Any with options says. An absent Any (both empty) and unknown types
/// give empty options: containerd sends types to runtimes that did not ask.
/// Errors: kInvalidArgument: the message or its TOML body is malformed.
Result<RuntimeOptions> DecodeRuntimeOptions(std::string_view type_url, std::string_view value);

/// Reads `options.config_path`, if there is one, and puts its keys below those
/// that came in the message. Errors: kInvalidArgument with file:line:column;
/// kNotFound. Blocks: for the file. Thread: workers.
Status ReadConfigPath(RuntimeOptions& options);

/// `over` on top of `base`, objects merged key by key. Empty text is `{}`.
/// Errors: kInvalidArgument: not JSON objects.
Result<std::string> MergeOptions(std::string_view base, std::string_view over);

}  // namespace gantry::oci
