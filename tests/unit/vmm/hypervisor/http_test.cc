// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/rest/http.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

Result<std::optional<HttpAnswer>> ReadAll(const std::string& text) {
  HttpAnswerReader reader;
  reader.buffer() = text;
  return reader.Next();
}

/// Why it is not taken.
std::string WhyNot(const std::string& text) {
  const auto answer = ReadAll(text);
  EXPECT_FALSE(answer);
  if (answer) {
    return {};
  }
  EXPECT_EQ(answer.error().code, Code::kDataLoss);
  return answer.error().message;
}

TEST(HttpRequest, SaysItsLengthOnlyWithABody) {
  EXPECT_EQ(TextOf({.method = "PUT", .target = "/api/v1/vm.boot"}),
            "PUT /api/v1/vm.boot HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n");
  EXPECT_EQ(TextOf({.method = "PUT", .target = "/vm", .body = "{}"}),
            "PUT /vm HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
}

TEST(HttpAnswerReader, ReadsAnAnswerWithoutABody) {
  const auto answer = ReadAll("HTTP/1.1 204 \r\nServer: x\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->status, 204);
  EXPECT_EQ((*answer)->body, "");
}

TEST(HttpAnswerReader, ReadsAStatusWithoutWords) {
  const auto answer = ReadAll("HTTP/1.0 204\r\n\r\n");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)->status, 204);
}

TEST(HttpAnswerReader, WaitsForTheRestByteByByte) {
  const std::string text = "HTTP/1.1 200 OK\r\ncontent-LENGTH:  4 \r\n\r\n{\"a\"";
  HttpAnswerReader reader;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    reader.buffer().push_back(text[i]);
    const auto answer = reader.Next();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(*answer) << i;
  }
  reader.buffer().push_back(text.back());
  const auto answer = reader.Next();
  ASSERT_TRUE(answer);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->body, "{\"a\"");
}

TEST(HttpAnswerReader, RefusesWhatItDoesNotRead) {
  EXPECT_THAT(WhyNot("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
              HasSubstr("encoded, which gantry does not read: Transfer-Encoding: chunked"));
  EXPECT_THAT(WhyNot("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"),
              HasSubstr("encoded"));
  EXPECT_THAT(WhyNot("HTTP/1.1 200 OK\r\n\r\n"), HasSubstr("does not say how long it is"));
  EXPECT_THAT(WhyNot("HTTP/1.1 100 Continue\r\n\r\n"), HasSubstr("none that ends a request"));
  EXPECT_THAT(WhyNot("HTTP/2 200\r\n\r\n"), HasSubstr("does not begin as HTTP does"));
  EXPECT_THAT(WhyNot("HTTP/1.1 20\r\n\r\n"), HasSubstr("does not begin as HTTP does"));
  EXPECT_THAT(WhyNot("HTTP/1.1 2000\r\n\r\n"), HasSubstr("does not begin as HTTP does"));
  EXPECT_THAT(WhyNot("HTTP/1.1 204 \r\n: x\r\n\r\n"), HasSubstr("a line of its head is none"));
}

TEST(HttpAnswerReader, RefusesLengthsThatAreNone) {
  const auto with = [](const std::string& length) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\n";
  };
  EXPECT_THAT(WhyNot(with("-1")), HasSubstr("its length is none"));
  EXPECT_THAT(WhyNot(with("0x10")), HasSubstr("its length is none"));
  EXPECT_THAT(WhyNot(with("99999999999999999999")), HasSubstr("its length is none"));
  EXPECT_THAT(WhyNot(with("1\r\nContent-Length: 2")), HasSubstr("there are two"));
  EXPECT_THAT(WhyNot(with("1048577")), HasSubstr("1048577 bytes, of which 1048576 are taken"));
}

TEST(HttpAnswerReader, RefusesMoreThanTheAnswer) {
  EXPECT_THAT(WhyNot("HTTP/1.1 204 \r\n\r\nHTTP/1.1 204 \r\n\r\n"), HasSubstr("more behind it"));
}

TEST(HttpAnswerReader, RefusesAHeadWithoutEnd) {
  EXPECT_THAT(WhyNot("HTTP/1.1 200 OK\r\nX: " + std::string(kMaxHttpHead, 'x')),
              HasSubstr("its head has more than 8192 bytes"));
}

TEST(HttpAnswerReader, ShowsNoControlCharacters) {
  EXPECT_THAT(WhyNot("\x1b[2J\r\n\r\n"), HasSubstr("?[2J"));
}

}  // namespace
}  // namespace gantry::vmm
