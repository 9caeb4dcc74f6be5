// SPDX-License-Identifier: Apache-2.0
//
// A runsc that gantry cannot start sentries with directly, so that it does by `runsc create`.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/host.h"
#include "tests/harness/settings.h"

namespace gantry::e2e {

/// Thread: the test's.
class ChangedRunsc {
 public:
  /// The only one of the run: an engine has what it knows of a build open.
  explicit ChangedRunsc(const Settings& settings);

  /// Its `create` does all and then hangs, from now on.
  void Hang() const;
  void HangNoMore() const;

  const std::string& path() const { return path_; }

  /// What runs by a `runsc create` of the bundle.
  static std::vector<HostProcess> Of(const std::string& bundle);

 private:
  std::string path_;
};

}  // namespace gantry::e2e
