// SPDX-License-Identifier: Apache-2.0
//
// The end of a terminal's output, on a machine that has too much to do.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/splice.h"
#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

/// Where the first EIO is taken for the end, some of these are cut, on Linux 6.18.
constexpr int kWriters = 12;
constexpr int kTerminalsOfEach = 1500;
constexpr size_t kOutput = 20'000;
/// So much a program writes at once.
constexpr size_t kPiece = 4000;

/// What of `text` comes through a terminal whose program writes it and ends.
size_t Passed(Relay& relay, const std::string& text) {
  Terminal terminal;
  auto pipe = MakePipe().value();
  EXPECT_TRUE(os::SetPipeSize(pipe.second.get(), size_t{1} << 20).has_value());
  EXPECT_TRUE(SetNonblocking(pipe.first.get(), false).has_value());
  CopySpec spec;
  spec.source = std::move(terminal.master);
  spec.sink = std::move(pipe.second);
  relay.Start(std::move(spec));
  for (size_t at = 0; at < text.size(); at += kPiece) {
    EXPECT_EQ(write(terminal.slave.get(), text.data() + at, kPiece), ssize_t{kPiece});
  }
  terminal.slave.reset();
  std::string got(text.size(), '\0');
  size_t passed = 0;
  while (passed < got.size()) {
    const ssize_t count = read(pipe.first.get(), got.data() + passed, got.size() - passed);
    if (count <= 0) {
      break;
    }
    passed += static_cast<size_t>(count);
  }
  return text.starts_with(std::string_view(got).substr(0, passed)) ? passed : 0;
}

TEST(TerminalEnd, ComesAfterAllThatWasWritten) {
  const std::string text = Pattern(kOutput);
  std::atomic<int> cut = 0;
  std::vector<std::jthread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&] {
      Relay relay;
      for (int n = 0; n < kTerminalsOfEach; ++n) {
        cut += Passed(relay, text) == text.size() ? 0 : 1;
      }
    });
  }
  writers.clear();
  EXPECT_EQ(cut, 0) << "of " << kWriters * kTerminalsOfEach;
}

}  // namespace
}  // namespace gantry::io
