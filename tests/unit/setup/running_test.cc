// SPDX-License-Identifier: Apache-2.0
//
// This process stands for containerd.
#include "core/setup/running.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::setup {
namespace {

using testing::HasSubstr;

TEST(RunningContainerd, HasWhatWasThereBeforeIt) {
  const auto folder = os::TempDir::Create();
  const std::string socket = folder->path() + "/s";
  const UniqueFd listener = *ListenUnix(socket);
  const Layout layout{.distribution = "containerd",
                      .config = "/c",
                      .containerd = "",
                      .socket = socket,
                      .restart = "restart it"};
  // A file of the system is older than this process.
  const auto checked = CheckRunning(layout, "/etc/passwd");
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_THAT(*checked, HasSubstr("was started after"));
}

TEST(RunningContainerd, HasNotWhatWasChangedSince) {
  const auto folder = os::TempDir::Create();
  const std::string socket = folder->path() + "/s";
  const UniqueFd listener = *ListenUnix(socket);
  const Layout layout{.distribution = "containerd",
                      .config = "/c",
                      .containerd = "",
                      .socket = socket,
                      .restart = "restart it"};
  const std::string file = folder->path() + "/c.toml";
  // The kernel tells the start of this process in ticks of 10 ms: until the file is of a later one.
  Result<std::string> checked = std::string();
  while (checked) {
    ASSERT_TRUE(WriteFile(file, "x", 0644));
    checked = CheckRunning(layout, file);
  }
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(checked.error().message, HasSubstr("restart it"));
}

TEST(RunningContainerd, IsMissed) {
  const Layout layout{.distribution = "containerd",
                      .config = "/c",
                      .containerd = "",
                      .socket = "/nonexistent/s",
                      .restart = ""};
  const auto checked = CheckRunning(layout, "/etc/passwd");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gantry::setup
