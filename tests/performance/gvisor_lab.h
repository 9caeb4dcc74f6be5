// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of gVisor are measured: a gantry of their own, whose handler has one build of
// runsc, and the command line of the same build with the same flags. Neither makes cgroups, and
// pods have loopback alone for a network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/report.h"
#include "tests/performance/runsc_host.h"

namespace gantry::bench {

/// A build of gVisor.
struct GvisorRelease {
  std::string name;
  /// Else its figures are for the record, in rows that bear its name.
  bool has_targets = false;

  std::string RowId(const std::string& row) const { return has_targets ? row : row + "-" + name; }
};

/// The newest first.
const std::vector<GvisorRelease>& GvisorReleases();

/// Why the rows cannot be measured; empty = they can.
std::string WithoutGvisor(const Lab& lab, const GvisorRelease& release);

/// `row` with the release's name, and with `limit` as the ratio that is allowed at most where
/// the release has targets.
Row GvisorRow(const GvisorRelease& release, Row row, double limit);

/// Thread: one. Owner: of its keeper, engine and host of commands, which end with it.
class GvisorLab {
 public:
  /// `warm`: sandboxes that gantry boots ahead.
  static Result<std::unique_ptr<GvisorLab>> Make(Lab& lab, const GvisorRelease& release,
                                                 int warm = 0);
  GvisorLab(const GvisorLab&) = delete;
  GvisorLab& operator=(const GvisorLab&) = delete;
  ~GvisorLab();

  Lab& lab() { return lab_; }

  const Side& side() const { return side_; }

  RunscHost& runsc() { return runsc_; }

  /// An EROFS image with `/sleep`.
  const std::string& image() const { return image_; }

  /// For bundles.
  std::string NewId(bool stock);

 private:
  GvisorLab(Lab& lab, Side side, const std::string& runsc, const std::string& folder);

  Lab& lab_;
  const Side side_;
  const std::string folder_;
  const std::string image_;
  RunscHost runsc_;
};

}  // namespace gantry::bench
