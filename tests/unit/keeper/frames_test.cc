// SPDX-License-Identifier: Apache-2.0
//
// Cutting ttrpc's byte stream.
#include "core/keeper/frames.h"

#include <vector>

#include <gmock/gmock.h>

#include <gantry/protowire.h>

namespace gantry::keeper {
namespace {

std::string Request(uint32_t stream, std::string_view payload) {
  std::string frame = ResponseFrame(stream, payload);
  frame[8] = static_cast<char>(kFrameRequest);
  return frame;
}

std::vector<Frame> Cut(std::string_view bytes, size_t piece) {
  FrameSplitter splitter;
  std::vector<Frame> frames;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    splitter.Feed(bytes.substr(at, piece),
                  [&](Frame frame) { frames.push_back(std::move(frame)); });
  }
  EXPECT_EQ(splitter.held(), 0U);
  return frames;
}

TEST(FrameSplitter, GivesTheSameFramesForAnyPieces) {
  const std::string bytes = Request(1, "one") + Request(3, "") + Request(5, std::string(300, 'x'));
  for (const size_t piece : {1U, 2U, 9U, 10U, 11U, 13U, 400U}) {
    const auto frames = Cut(bytes, piece);
    ASSERT_EQ(frames.size(), 3U) << piece;
    EXPECT_EQ(frames[0].payload, "one");
    EXPECT_EQ(frames[0].stream, 1U);
    EXPECT_EQ(frames[0].type, kFrameRequest);
    EXPECT_EQ(frames[1].payload, "");
    EXPECT_EQ(frames[2].payload.size(), 300U);
  }
}

TEST(FrameSplitter, TakesTheLargestPayload) {
  const auto frames = Cut(Request(1, std::string(kMaxPayload, 'x')), 65536);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_FALSE(frames[0].skipped);
  EXPECT_EQ(frames[0].payload.size(), kMaxPayload);
}

TEST(FrameSplitter, SkipsALongerOneAndGoesOn) {
  const auto frames = Cut(Request(1, std::string(kMaxPayload + 1, 'x')) + Request(3, "y"), 65536);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_TRUE(frames[0].skipped);
  EXPECT_EQ(frames[0].stream, 1U);
  EXPECT_TRUE(frames[0].payload.empty());
  EXPECT_EQ(frames[1].payload, "y");
}

TEST(FrameSplitter, DropsWhatItHoldsWhenTold) {
  FrameSplitter splitter;
  std::vector<Frame> frames;
  const auto take = [&](Frame frame) { frames.push_back(std::move(frame)); };
  const std::string bytes = Request(1, "0123456789");
  splitter.Feed(std::string_view(bytes).substr(0, 15), take);
  EXPECT_EQ(splitter.held(), 5U);
  splitter.SkipCurrent();
  EXPECT_EQ(splitter.held(), 0U);
  splitter.Feed(bytes.substr(15) + Request(3, "z"), take);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_TRUE(frames[0].skipped);
  EXPECT_EQ(frames[1].payload, "z");
}

TEST(RequestTimeout, IsReadFromTheEnvelope) {
  ProtoWriter request;
  request.Bytes(1, "service");
  request.Int(4, 1500);
  EXPECT_EQ(RequestTimeout(request.str()).count(), 1500);
  EXPECT_EQ(RequestTimeout("").count(), 0);
  EXPECT_EQ(RequestTimeout("\xff\xff").count(), 0);
  ProtoWriter negative;
  negative.Int(4, -5);
  EXPECT_EQ(RequestTimeout(negative.str()).count(), 0);
}

TEST(ErrorResponse, IsAStatusWithCodeAndText) {
  const std::string bytes = ErrorResponse(Code::kUnimplemented, "no");
  ProtoReader response(bytes);
  ASSERT_TRUE(response.Next());
  ProtoReader status(response.bytes());
  ASSERT_TRUE(status.Next());
  EXPECT_EQ(status.number(), 12U);
  ASSERT_TRUE(status.Next());
  EXPECT_EQ(status.text(), "no");
}

}  // namespace
}  // namespace gantry::keeper
