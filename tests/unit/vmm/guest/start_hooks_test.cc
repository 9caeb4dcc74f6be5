// SPDX-License-Identifier: Apache-2.0
//
// Hooks that are programs of the container's: run before its own program, and what comes of those
// that fail.
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A shell as the hook. `more`: members, with a comma in front.
std::string Shell(const std::string& script, const std::string& more = "") {
  return Format(R"({{"path": "/bin/busybox", "args": ["hook", "sh", "-c", "{}"]{}}})", script,
                more);
}

class StartHooks : public GuestTest {
 protected:
  static container::Config Hooked(const std::string& hooks, const std::string& script) {
    container::Config config{.script = script};
    config.top =
        Format(R"("hooks": {{"startContainer": [{}]}}, "annotations": {{"a": "b"}})", hooks);
    return config;
  }

  Status Start(const Made& made) {
    const auto started =
        host_->client().Call(protocol::Start{.container = made.id, .exec = ""}, Soon());
    return started ? Status() : std::unexpected(started.error());
  }

  Error FailureOf(const std::string& hook) {
    const Made made = Create(Hooked(hook, "echo never"));
    const Status started = Start(made);
    EXPECT_FALSE(started) << hook;
    EXPECT_EQ(ReadStream(made.out), "") << "its program has run";
    EXPECT_TRUE(host_->client().Call(protocol::Delete{.container = made.id, .exec = ""}, Soon()));
    return started ? Error() : started.error();
  }
};

TEST_F(StartHooks, RunInTheContainerBeforeItsProgramAndReadItsState) {
  const std::string hooks =
      Shell("cat >/state; echo $A. >/env") + "," +
      Shell("cat /state >/copy; echo $A. >>/env", R"(, "env": ["A=the hook"], "timeout": 7)");
  const Made made = Create(Hooked(hooks, "cat /copy /env; echo $A; test $$ = 1 && echo first"));
  ASSERT_TRUE(Start(made));
  EXPECT_THAT(ReadStream(made.out),
              AllOf(HasSubstr(Format(R"("id":"{}","status":"created","pid":1)", made.id)),
                    HasSubstr("\"annotations\":{\"a\":\"b\"}}.\nthe hook.\nb\nfirst\n")));
  EXPECT_EQ(host_->WaitForExit(made.id), 0U);
}

TEST_F(StartHooks, ThatFailFailTheStart) {
  const Error ended = FailureOf(Shell("echo because >&2; exit 3"));
  EXPECT_EQ(ended.code, Code::kInternal);
  EXPECT_THAT(ended.message, AllOf(HasSubstr("hook '/bin/busybox' (startContainer)"),
                                   HasSubstr("status 3: because")));
  EXPECT_THAT(FailureOf(Shell("kill -9 $$")).message, HasSubstr("signal 9: it has said nothing"));
  const Error late = FailureOf(Shell("echo on; sleep 1000", R"(, "timeout": 1)"));
  EXPECT_EQ(late.code, Code::kDeadlineExceeded);
  EXPECT_THAT(late.message, HasSubstr("not ended in its time: on"));
  const Error missing = FailureOf(R"({"path": "/bin/nosuch"})");
  EXPECT_THAT(missing.message, HasSubstr("/bin/nosuch"));
}

// An engine that was killed meanwhile has asked for the start, and the next one asks again.
TEST_F(StartHooks, AreRunOnceThoughTheStartIsAskedForTwice) {
  const Made made =
      Create(Hooked(Shell("echo ran >>/ran; while [ ! -e /go ]; do sleep 0.05; done"), "cat /ran"));
  const std::string start = EncodeProto(protocol::Start{.container = made.id, .exec = ""});
  std::promise<bool> first;
  std::promise<bool> second;
  for (std::promise<bool>* const one : {&first, &second}) {
    ASSERT_TRUE(host_->client().Post(
        protocol::Kind::kStart, start,
        [one](const Result<std::string>& answer) { one->set_value(answer.has_value()); }));
  }
  // Answered behind both of those.
  ASSERT_TRUE(host_->client().Call(protocol::List{}, Soon()));
  ASSERT_TRUE(WriteFile(bundle_.InRoot("/go"), "", 0600));
  EXPECT_TRUE(first.get_future().get());
  EXPECT_TRUE(second.get_future().get());
  EXPECT_EQ(ReadStream(made.out), "ran\n");
}

TEST_F(StartHooks, ThatAreNoneAreRefused) {
  for (const char* const hook :
       {"7", R"({"path": "relative"})", R"({"path": 7})", R"({"path": "/x", "args": 7})",
        R"({"path": "/x", "timeout": 0})", R"({"path": "/x", "timeout": "1"})"}) {
    EXPECT_EQ(FailureOf(hook).code, Code::kInvalidArgument) << hook;
  }
}

}  // namespace
}  // namespace gantry::vmm
