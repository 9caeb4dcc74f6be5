// SPDX-License-Identifier: Apache-2.0
//
// What there is to know of a configuration of containerd's before it is added to.
// Thread: any. Blocks: never.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::setup {

struct ConfigFile {
  int version = 0;
  /// As they are written: absolute, or relative to the file's folder, with `*`.
  std::vector<std::string> imports;
  /// `runtime_type` of each of CRI's runtimes.
  std::map<std::string, std::string> runtimes;
  std::vector<std::string> proxy_plugins;
  bool cri_disabled = false;
};

/// Errors: kInvalidArgument with the place: it is no TOML, or no configuration of containerd's.
Result<ConfigFile> ParseConfig(std::string_view text, std::string_view path);

/// Both are configurations as `containerd config dump` writes them, and the second differs from
/// the first by nothing but these runtimes and the proxy plugin `gantry`. Errors:
/// kFailedPrecondition: the section that differs; kInvalidArgument: no TOML.
Status SameBut(std::string_view before, std::string_view after,
               const std::vector<std::string>& runtimes);

}  // namespace gantry::setup
