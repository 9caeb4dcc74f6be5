// SPDX-License-Identifier: Apache-2.0
//
// What leaves a node in a bug report goes through here first: values that look like secrets are
// replaced. It errs on the side of leaving out.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::ctl {

inline constexpr std::string_view kLeftOut = "(left out)";

/// Whether what is called so is a secret, or may hold one: tokens, passwords, keys, environments,
/// annotations.
bool IsSecretName(std::string_view name);

/// Text such as a log: what follows a secret's name and `=` or `:`, what follows `Bearer`, and
/// names and passwords in URLs are replaced. Lines stay lines.
std::string RedactText(std::string_view text);

/// A YAML document: what stands below a secret's name is replaced, however it is written; comments
/// are dropped. Errors: kInvalidArgument: it is no YAML.
Result<std::string> RedactYaml(const std::string& text);

}  // namespace gantry::ctl
