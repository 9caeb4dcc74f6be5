// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

namespace gantry::keeper {

/// What every child of the keeper starts from, since the keeper has changed its own.
struct ChildDefaults {
  rlimit open_files{};
  int oom_score_adj = 0;
  /// The keeper's own is stricter.
  mode_t umask = 0;

  /// What the next program is handed (state.h).
  void Each(this auto& self, auto&& field) {
    field(1, self.open_files.rlim_cur);
    field(2, self.open_files.rlim_max);
    field(3, self.oom_score_adj);
    field(4, self.umask);
  }
};

}  // namespace gantry::keeper
