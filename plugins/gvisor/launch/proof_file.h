// SPDX-License-Identifier: Apache-2.0
//
// What a canary sandbox has shown of a build of runsc, in a file: so that it need not run again
// with each engine, and so that an operator can be told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <gantry/error.h>

#include "plugins/gvisor/launch/runsc.h"

namespace gantry::gvisor {

/// Of a proof as text.
inline constexpr size_t kMaxProofBytes = size_t{16} << 10;

/// Thread: any; plain data.
struct Proof {
  FileIdentity runsc;
  FileIdentity sentry;
  std::string platform;
  /// The step that failed, and why; empty: the build works.
  std::string failure;

  std::string ToJson() const;
  /// Errors: kDataLoss.
  static Result<Proof> FromJson(const std::string& text);
  bool operator==(const Proof&) const = default;
};

/// One for each path and platform: a build that is replaced replaces its proof.
std::string ProofPath(const std::string& root, const std::string& runsc,
                      const std::string& platform);

/// None: there is none, it is damaged, or it is of other files than these.
std::optional<Proof> ReadProof(const std::string& root, const Runsc& runsc,
                               const std::string& platform);

/// Makes `root`, for its owner alone, where it is not there. Errors: of the file.
Status WriteProof(const std::string& root, const Runsc& runsc, const std::string& platform,
                  const std::string& failure);

}  // namespace gantry::gvisor
