// SPDX-License-Identifier: Apache-2.0
//
// The runtimes that containerd is to have, as text for it and for Kubernetes.
// Thread: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "core/setup/release.h"

namespace gantry::setup {

/// A runtime of containerd's, for a handler of gantry's.
struct Runtime {
  std::string handler;
  /// containerd's name of it, which a RuntimeClass has as `handler`.
  std::string name;
  Sandboxer sandboxer = Sandboxer::kPodsandbox;

  bool operator==(const Runtime&) const = default;
};

/// `HANDLER[=NAME][:SANDBOXER],...`. Without a name the runtime is called as the handler, that of
/// `runc` `gantry`. Errors: kInvalidArgument: a word that is none, a name that no RuntimeClass can
/// have (RFC 1123), two of one name, nothing at all.
Result<std::vector<Runtime>> ParseRuntimes(std::string_view words, Sandboxer sandboxer);

struct Wanted {
  std::vector<Runtime> runtimes;
  /// gantry's handler for who names none: its runtime needs no link to the shim.
  std::string default_handler = "runc";
  /// Absolute path of containerd-shim-gantry-v1, beside which the links for other handlers are;
  /// empty: containerd finds them in its PATH.
  std::string shim = {};
  /// Socket of gantry's sandbox controller.
  std::string grpc_address = {};

  bool HasController() const;
};

/// The shim for a handler, where `wanted.shim` says: the path that containerd executes. Else the
/// name.
std::string ShimOf(const Wanted& wanted, const std::string& handler);

/// `runtime_type` of the handler's runtime.
std::string TypeOf(const Wanted& wanted, const std::string& handler);

/// CRI's section, without quotes: its name differs by the version of the configuration.
std::string_view CriPlugin(int config_version);

/// Tables for a configuration of that version. They begin with a table's head, so that they can
/// follow whatever there is.
std::string TablesOf(const Wanted& wanted, const Release& release, int config_version);

/// YAML of a RuntimeClass for each, with what a pod of it costs.
std::string RuntimeClassesOf(const Wanted& wanted);

}  // namespace gantry::setup
