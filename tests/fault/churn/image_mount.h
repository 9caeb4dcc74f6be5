// SPDX-License-Identifier: Apache-2.0
//
// The test image as a folder, for containers that no containerd makes.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/harness/e2e_test.h"

namespace gantry::fault {

/// Thread: the test's.
class ImageMount {
 public:
  explicit ImageMount(const e2e::Node& node) : node_(node), path_(node.settings().root + "/image") {
    std::filesystem::create_directories(path_);
    const e2e::Output mounted = node_.Ctr({"images", "mount", e2e::kImage, path_});
    EXPECT_EQ(mounted.status, 0) << mounted.Text();
  }

  ~ImageMount() {
    const e2e::Output unmounted = node_.Ctr({"images", "unmount", "--rm", path_});
    EXPECT_EQ(unmounted.status, 0) << unmounted.Text();
  }

  ImageMount(const ImageMount&) = delete;
  ImageMount& operator=(const ImageMount&) = delete;

  const std::string& path() const { return path_; }

 private:
  const e2e::Node& node_;
  std::string path_;
};

}  // namespace gantry::fault
