// SPDX-License-Identifier: Apache-2.0
//
// A bundle that both sides of a row of gVisor take: a root file system of its own in a folder
// or in an EROFS image, and CRI's annotations, by which containers are of a pod.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/gvisor_lab.h"

namespace gantry::bench {

struct GvisorRequest {
  std::string id;
  /// The id of its pod: its own makes it the pod's root.
  std::string pod;
  /// Without files that a gofer would have to serve.
  bool is_image = false;
};

/// With a container that sleeps. Owner: of the folders, which the destructor removes.
class GvisorBundle {
 public:
  GvisorBundle() = default;
  GvisorBundle(const GvisorBundle&) = delete;
  GvisorBundle& operator=(const GvisorBundle&) = delete;
  ~GvisorBundle();

  Status Make(GvisorLab& lab, const GvisorRequest& wanted);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string rootfs_;
};

}  // namespace gantry::bench
