// SPDX-License-Identifier: Apache-2.0
#include "core/door/command_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gantry::door {
namespace {

Result<CommandLine> Parse(std::vector<std::string> words) {
  words.insert(words.begin(), "gantry-grpc");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

TEST(DoorCommandLine, HasDefaults) {
  const auto line = Parse({"--listen-fd=3"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->run_dir, "/run/gantry");
  EXPECT_EQ(line->sandboxes, "/run/gantry-sandboxes");
  EXPECT_EQ(line->containerd, "/run/containerd/containerd.sock");
  EXPECT_EQ(line->containerd_ttrpc, "/run/containerd/containerd.sock.ttrpc");
}

TEST(DoorCommandLine, NeedsASocket) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"--listen-fd=2"},
                                                {"--listen-fd=x"},
                                                {"--no-such"},
                                                {"--listen-fd=3", "--run-dir=run"}}) {
    const auto line = Parse(words);
    ASSERT_FALSE(line);
    EXPECT_EQ(line.error().code, Code::kInvalidArgument);
  }
}

TEST(DoorCommandLine, NeedsNoSocketWhereItOnlyExports) {
  const auto line = Parse({"--export-to=dns:127.0.0.1:4317"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->export_to, "dns:127.0.0.1:4317");
  EXPECT_EQ(line->listen_fd, -1);
  EXPECT_EQ(Parse({"--export-to=unix:/run/s", "--listen-fd=3"})->listen_fd, 3);
  EXPECT_FALSE(Parse({"--export-to=unix:/run/s", "--listen-fd=2"}));
}

TEST(DoorCommandLine, DialsInsteadWithASocketOfItsOwn) {
  const auto line = Parse({"--dial=/run/s", "--socket-fd=3"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->dial, "/run/s");
  EXPECT_EQ(line->socket_fd, 3);
  EXPECT_FALSE(Parse({"--dial=/run/s"}));
}

TEST(DoorCommandLine, HelpsWithoutOne) {
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_NE(Usage().find("--listen-fd"), std::string::npos);
}

}  // namespace
}  // namespace gantry::door
