// SPDX-License-Identifier: Apache-2.0
#include "packaging/kubernetes/node_api/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "packaging/kubernetes/node_api/node.h"
#include "tests/unit/node_api/tls_server.h"

namespace gantry::node_api {
namespace {

using testing::HasSubstr;

constexpr char kGood[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

class ApiClient : public testing::Test {
 protected:
  void SetUp() override { folder_ = std::move(*os::TempDir::Create()); }

  std::string ca_file() const { return folder_.path() + "/ca.crt"; }

  ApiServer Of(const TlsServer& server) const {
    return {.host = "127.0.0.1", .port = server.port(), .token = "secret", .ca_file = ca_file()};
  }

  os::TempDir folder_;
};

TEST_F(ApiClient, PatchesLabels) {
  TlsServer server(ca_file(), "127.0.0.1", kGood);
  const Status done = SetLabels(Of(server), "node-1", {"io.gantry/runc=true"});
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_THAT(server.asked(), testing::StartsWith("PATCH /api/v1/nodes/node-1 HTTP/1.1\r\n"));
  EXPECT_THAT(server.asked(), HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(server.asked(), HasSubstr("Content-Type: application/merge-patch+json\r\n"));
  EXPECT_THAT(server.asked(),
              testing::EndsWith(R"({"metadata":{"labels":{"io.gantry/runc":"true"}}})"));
}

TEST_F(ApiClient, TellsWhatTheServerRefuses) {
  TlsServer server(ca_file(), "127.0.0.1",
                   "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nnot yours");
  const Status done = SetLabels(Of(server), "node-1", {"a=b"});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::kPermissionDenied);
  EXPECT_THAT(done.error().message, HasSubstr("403: not yours"));
}

// Else whoever is in between has the token.
TEST_F(ApiClient, AsksNobodyWithAnothersCertificate) {
  TlsServer server(folder_.path() + "/other.crt", "127.0.0.1", kGood);
  const TlsServer authority(ca_file(), "127.0.0.1", kGood);
  const Status done = SetLabels(Of(server), "node-1", {"a=b"});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_EQ(server.asked(), "");
  // Lets the other one end.
  EXPECT_TRUE(Call(Of(authority), {.target = "/", .content_type = "", .body = ""}));
}

TEST_F(ApiClient, AsksNobodyByAnotherName) {
  TlsServer server(ca_file(), "10.0.0.1", kGood);
  const Status done = SetLabels(Of(server), "node-1", {"a=b"});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_EQ(server.asked(), "");
}

TEST_F(ApiClient, TellsThatNobodyIsThere) {
  const Status done = SetLabels({.host = "127.0.0.1", .port = "1", .token = "", .ca_file = "/none"},
                                "node-1", {"a=b"});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::kUnavailable);
}

TEST_F(ApiClient, RefusesNamesThatAreNoNodes) {
  for (const char* const node : {"", "a/b", "a?b", "a b"}) {
    const Status done = SetLabels(
        {.host = "127.0.0.1", .port = "1", .token = "", .ca_file = "/none"}, node, {"a=b"});
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gantry::node_api
