// SPDX-License-Identifier: Apache-2.0
//
// What the shim prints. containerd takes stdout and stderr of `start` together, so
// nothing else may be printed on success.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/link/messages.h"

namespace gantry::shim {

/// Which form of answer to `start` this containerd understands.
enum class AnswerForm {
  kPlain,     ///< The address: containerd 1.6.
  kVersion2,  ///< JSON, task API v2: 1.7, and whatever cannot be told from it.
  kVersion3,  ///< JSON, task API v3: 2.0 and later.
};

/// The one place that decides it. `has_max_version`: $MAX_SHIM_VERSION is set.
/// `bootstrap_version`: see Bootstrap. `containerd_major`: see ContainerdMajor.
AnswerForm ChooseForm(bool has_max_version, uint32_t bootstrap_version, int containerd_major);

/// The text for stdout. 1.6 and 1.7 need the same in the bundle's file `address`.
std::string StartAnswer(AnswerForm form, std::string_view address);

/// An encoded containerd.task.v2.DeleteResponse.
std::string DeleteAnswer(const link::Deleted& deleted);

/// What the shim has found out for `-info`.
struct HandlerFeatures {
  /// A features document of the OCI runtime spec; empty: nothing is promised.
  std::string json;
  /// Why nothing is; shown by `ctr plugins inspect-runtime`.
  std::string why_not;
};

/// An encoded containerd.types.RuntimeInfo.
std::string InfoAnswer(std::string_view handler, const HandlerFeatures& features);

/// For people.
std::string VersionAnswer(std::string_view program);

}  // namespace gantry::shim
