// SPDX-License-Identifier: Apache-2.0
#include "core/os/spare_fds.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/os/few_descriptors.h"

namespace gantry::os {
namespace {

/// The lowest number that is free.
int NextFd() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

Result<std::pair<UniqueFd, UniqueFd>> OpenTwo() {
  std::pair<UniqueFd, UniqueFd> two;
  for (UniqueFd* fd : {&two.first, &two.second}) {
    fd->reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!*fd) {
      return FailErrno(errno, "open");
    }
  }
  return two;
}

TEST(SpareFds, AreTwoThatAreFreeWhereThereAreNoMore) {
  SpareFds spares;
  const test::FewDescriptors few(static_cast<rlim_t>(NextFd()));
  ASSERT_FALSE(OpenTwo());
  EXPECT_TRUE(spares.Run(OpenTwo));
  EXPECT_TRUE(spares.Run(OpenTwo)) << "they are kept again";
}

TEST(SpareFds, AreGoneOnceSomebodyKeepsThem) {
  SpareFds spares;
  Result<std::pair<UniqueFd, UniqueFd>> kept = std::unexpected(Error{});
  const test::FewDescriptors few(static_cast<rlim_t>(NextFd()));
  kept = spares.Run(OpenTwo);
  EXPECT_TRUE(kept);
  EXPECT_EQ(spares.Run(OpenTwo).error().code, Code::kResourceExhausted);
  kept = std::unexpected(Error{});
  EXPECT_TRUE(spares.Run(OpenTwo)) << "once there are some they are kept again";
  EXPECT_TRUE(spares.Run(OpenTwo));
}

TEST(SpareFds, LeaveOtherErrorsAlone) {
  SpareFds spares;
  int runs = 0;
  const Status status = spares.Run([&]() -> Status {
    ++runs;
    return Fail(Code::kNotFound, "gone");
  });
  EXPECT_FALSE(status);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace gantry::os
