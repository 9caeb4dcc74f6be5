// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace gantry::test {

/// As long as this is there, descriptors from `limit` on are not to be had.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t limit) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }

  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

  const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
};

}  // namespace gantry::test
