// SPDX-License-Identifier: Apache-2.0
#include "core/io/copy.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/splice.h"

namespace gantry::io {
namespace {

TEST(Copy, EndsWhenItIsEmptyHoweverMuchThereWas) {
  // As much as is moved before others get their turn.
  constexpr size_t kBytes = size_t{64} << 10;
  auto from = MakePipe().value();
  const std::string data(kBytes, 'x');
  ASSERT_EQ(write(from.second.get(), data.data(), data.size()), static_cast<ssize_t>(kBytes));
  async::Loop loop;
  std::optional<uint64_t> dropped;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink_kind = SinkKind::kNone;
  spec.on_end = [&](CopyEnd end, uint64_t bytes) {
    EXPECT_EQ(end, CopyEnd::kFinished);
    dropped = bytes;
  };
  const auto copy = std::make_shared<Copy>(loop, std::move(spec), [] {});
  // The other end is still open: nothing else will come, and no end either.
  copy->Finish();
  for (int turn = 0; turn < 100 && !dropped; ++turn) {
    loop.RunOnce(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(dropped, kBytes);
}

TEST(Copy, HasMovedWhatThereWasWhenItIsFlushed) {
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  async::Loop loop;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink = std::move(to.second);
  const auto copy = std::make_shared<Copy>(loop, std::move(spec), [] {});
  copy->Run();
  ASSERT_EQ(write(from.second.get(), "last", 4), 4);
  // The loop has no turn.
  copy->Flush();
  char text[8] = {};
  EXPECT_EQ(read(to.first.get(), text, sizeof(text)), 4);
  copy->Abandon();
}

TEST(Copy, WaitsAnewAfterAllThatComes) {
  auto from = MakePipe().value();
  auto to = MakePipe().value();
  async::Loop loop;
  bool ended = false;
  CopySpec spec;
  spec.source = std::move(from.first);
  spec.sink = std::move(to.second);
  spec.on_end = [&](CopyEnd, uint64_t) { ended = true; };
  const auto copy = std::make_shared<Copy>(loop, std::move(spec), [] {});
  copy->Run();
  EXPECT_EQ(loop.timers(), 0U);
  copy->FinishWhenIdle(std::chrono::hours(1));
  EXPECT_EQ(loop.timers(), 1U);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(write(from.second.get(), "x", 1), 1);
    loop.RunOnce(std::chrono::seconds(30));
    char byte = 0;
    EXPECT_EQ(read(to.first.get(), &byte, 1), 1);
    EXPECT_EQ(loop.timers(), 1U);
  }
  EXPECT_FALSE(ended);
  from.second.reset();
  while (!ended && loop.RunOnce(std::chrono::seconds(30))) {
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(loop.timers(), 0U);
}

}  // namespace
}  // namespace gantry::io
