// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RedactText, LeavesOutWhatLooksLikeASecret) {
  for (const std::string text :
       {"token=abc123", "TOKEN: abc123", "my_token_v2=abc123 next", "\"password\": \"abc123\"",
        "{\"password\":\"abc123\",\"user\":\"me\"}", "Authorization: Bearer abc123",
        "Authorization: Basic abc123", "sent bearer abc123 on", "http://me:abc123@host/path",
        "DB_PASSWORD='abc123'", "api_key = abc123", "msg=\"secret=\\\"abc123\\\"\"",
        "token=x token=abc123", "secret: token: abc123"}) {
    EXPECT_THAT(RedactText(text), AllOf(Not(HasSubstr("abc123")), HasSubstr(std::string(kLeftOut))))
        << text;
  }
}

TEST(RedactText, LeavesTheRestAsItIs) {
  for (const std::string text :
       {"", "\n", "time=2025-01-31T08:15:30Z level=info msg=\"created, pid 7\" ns=k8s.io id=a1\n",
        "the token is there", "unix:///run/containerd/containerd.sock", "a\n\nb", "x=1 y=2\n"}) {
    EXPECT_EQ(RedactText(text), text);
  }
  EXPECT_EQ(RedactText("a=1 token=t b=2\nc=3\n"), "a=1 token=(left out) b=2\nc=3\n");
  EXPECT_EQ(RedactText("http://me:pw@host/path"), "http://(left out)@host/path");
}

TEST(RedactYaml, LeavesOutValuesBelowSuchNamesHoweverTheyAreWritten) {
  const auto text = RedactYaml(R"(
# pw in a comment: abc123
handlers:
  remote:
    backend: remote
    options: {Endpoint: "https://me:abc123@host", Token: abc123, env: [A=abc123, "B=abc123"]}
backends:
  remote:
    options:
      credentials:
        user: abc123
        pass: |
          abc123
limits:
  worker_threads: 8
)");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, Not(HasSubstr("abc123")));
  EXPECT_THAT(*text, AllOf(HasSubstr("worker_threads: 8"), HasSubstr("backend: remote"),
                           HasSubstr("user: ")));
}

TEST(RedactYaml, SaysThatSomethingElseIsNone) {
  EXPECT_EQ(RedactYaml("a: [").error().code, Code::kInvalidArgument);
  EXPECT_TRUE(RedactYaml(""));
}

}  // namespace
}  // namespace gantry::ctl
