// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/ttrpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::rpc {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::Pair;

TEST(FrameTest, EncodesTheHeaderBigEndian) {
  const auto frame = EncodeFrame(0x01020304, FrameType::kRequest, kRemoteOpen, "abc");
  ASSERT_TRUE(frame);
  EXPECT_EQ(*frame, "\0\0\0\3\1\2\3\4\1\2abc"s);
  const FrameHeader header = DecodeFrameHeader(*frame);
  EXPECT_EQ(header.length, 3U);
  EXPECT_EQ(header.stream, 0x01020304U);
  EXPECT_EQ(header.type, 1);
  EXPECT_EQ(header.flags, kRemoteOpen);
}

TEST(FrameTest, RefusesToSendMoreThanTheLimit) {
  EXPECT_TRUE(EncodeFrame(1, FrameType::kRequest, 0, std::string(kMaxFrameBytes, 'x')));
  const auto frame = EncodeFrame(1, FrameType::kRequest, 0, std::string(kMaxFrameBytes + 1, 'x'));
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Code::kResourceExhausted);
}

TEST(FrameSplitterTest, DoesNotCareHowTheBytesCome) {
  const std::string bytes = *EncodeFrame(1, FrameType::kRequest, 0, "first") +
                            *EncodeFrame(3, FrameType::kResponse, 0, "") +
                            *EncodeFrame(5, FrameType::kData, kNoData, "third");
  for (size_t step = 1; step <= bytes.size(); ++step) {
    FrameSplitter splitter;
    std::vector<std::pair<uint32_t, std::string>> got;
    for (size_t at = 0; at < bytes.size(); at += step) {
      splitter.Feed(std::string_view(bytes).substr(at, step));
      while (auto frame = splitter.Next()) {
        EXPECT_FALSE(frame->oversized);
        got.emplace_back(frame->header.stream, frame->data);
      }
    }
    EXPECT_THAT(got, ElementsAre(Pair(1, "first"), Pair(3, ""), Pair(5, "third"))) << step;
  }
}

TEST(FrameSplitterTest, SkipsAnOversizedFrameAndGoesOn) {
  const size_t size = kMaxFrameBytes + 5;
  const std::string bytes = "\0\x40\0\5\0\0\0\7\1\0"s + std::string(size, 'x') +
                            *EncodeFrame(9, FrameType::kRequest, 0, "next");
  for (const size_t step : {size_t{7}, size_t{4096}, bytes.size()}) {
    FrameSplitter splitter;
    std::vector<Frame> got;
    for (size_t at = 0; at < bytes.size(); at += step) {
      splitter.Feed(std::string_view(bytes).substr(at, step));
      while (auto frame = splitter.Next()) {
        got.push_back(*frame);
      }
    }
    ASSERT_EQ(got.size(), 2U) << step;
    EXPECT_TRUE(got[0].oversized);
    EXPECT_EQ(got[0].header.stream, 7U);
    EXPECT_EQ(got[0].data, "");
    EXPECT_EQ(got[1].data, "next");
  }
}

Request SampleRequest() {
  return Request{"containerd.task.v3.Task",
                 "State",
                 "\n\2a1",
                 std::chrono::seconds(2),
                 {{std::string(kNamespaceKey), "k8s.io"}, {"traceparent", ""}}};
}

TEST(RequestTest, SurvivesTheWire) {
  const Request request = SampleRequest();
  const auto decoded = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->service, request.service);
  EXPECT_EQ(decoded->method, request.method);
  EXPECT_EQ(decoded->payload, request.payload);
  EXPECT_EQ(decoded->timeout, request.timeout);
  EXPECT_EQ(decoded->metadata, request.metadata);
  EXPECT_EQ(FindMetadata(decoded->metadata, kNamespaceKey), "k8s.io");
  EXPECT_EQ(FindMetadata(decoded->metadata, "absent"), "");
}

TEST(RequestTest, IsReadAsAGoClientWritesIt) {
  // service "s", method "m", payload "p", timeout_nano 300, {"k": "v"}, an unknown field 9.
  const std::string bytes = "\x0a\1s\x12\1m\x1a\1p\x20\xac\x02\x2a\6\x0a\1k\x12\1v\x48\1"s;
  const auto decoded = DecodeRequest(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->service, "s");
  EXPECT_EQ(decoded->method, "m");
  EXPECT_EQ(decoded->payload, "p");
  EXPECT_EQ(decoded->timeout.count(), 300);
  EXPECT_THAT(decoded->metadata, ElementsAre(Pair("k", "v")));
}

TEST(RequestTest, RefusesWhatIsCutWithinAField) {
  const std::string bytes = EncodeRequest(SampleRequest());
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodeRequest(std::string_view(bytes).substr(0, size));
    if (!decoded) {
      ++refused;
      EXPECT_EQ(decoded.error().code, Code::kInvalidArgument);
    }
  }
  // All but the cuts between two of the six fields (and before the first).
  EXPECT_EQ(refused, bytes.size() - 6);
}

TEST(RequestTest, RefusesAFieldOfTheWrongKind) {
  EXPECT_FALSE(DecodeRequest("\x08\1"s));
  EXPECT_FALSE(DecodeRequest("\x0b"s));
}

TEST(RequestTest, RefusesTooMuchMetadata) {
  Request request = SampleRequest();
  request.metadata.assign(kMaxMetadata, {"k", "v"});
  EXPECT_TRUE(DecodeRequest(EncodeRequest(request)));
  request.metadata.emplace_back("k", "v");
  const auto decoded = DecodeRequest(EncodeRequest(request));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kInvalidArgument);
}

TEST(ResponseTest, AnEmptyFrameIsSuccess) {
  EXPECT_EQ(EncodeResponse(Result<std::string>("")), "");
  const auto decoded = DecodeResponse("");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, "");
}

TEST(ResponseTest, CarriesAPayloadOrAnError) {
  EXPECT_EQ(EncodeResponse(Result<std::string>("abc")), "\x12\3abc");
  const std::string error = EncodeResponse(Response{Code::kNotFound, "gone", {}});
  EXPECT_EQ(error, "\x0a\x08\x08\5\x12\4gone");
  const auto decoded = DecodeResponse(error);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kNotFound);
  EXPECT_EQ(decoded.error().message, "gone");
}

TEST(ResponseTest, AFailureNeverReadsAsSuccess) {
  const Result<std::string> failure = std::unexpected(Error{Code::kOk, 0, "odd", {}});
  EXPECT_FALSE(DecodeResponse(EncodeResponse(failure)));
}

TEST(ResponseTest, MalformedBytesAreInternal) {
  const auto decoded = DecodeResponse("\x0a\x7f"s);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kInternal);
}

std::string MessageOverTheWire(const std::string& message) {
  return DecodeResponse(EncodeResponse(Response{Code::kInternal, message, {}})).error().message;
}

TEST(ResponseTest, MessagesAreMadeUtf8) {
  EXPECT_EQ(MessageOverTheWire("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb3"),
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb3");
  EXPECT_EQ(MessageOverTheWire("a\xff"
                               "b\xc3"),
            "a?b?");
  // Overlong, a surrogate, and beyond the last code point.
  EXPECT_EQ(MessageOverTheWire("\xc0\x80"), "??");
  EXPECT_EQ(MessageOverTheWire("\xed\xa0\x80"), "???");
  EXPECT_EQ(MessageOverTheWire("\xf4\x90\x80\x80"), "????");
}

TEST(ResponseTest, LongMessagesAreCut) {
  const std::string long_message(kMaxMessageBytes - 1, 'x');
  EXPECT_EQ(MessageOverTheWire(long_message), long_message);
  // The character that does not fit whole is left out.
  EXPECT_EQ(MessageOverTheWire(long_message + "\xc3\xa9"), long_message);
}

}  // namespace
}  // namespace gantry::rpc
