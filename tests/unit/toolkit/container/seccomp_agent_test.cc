// SPDX-License-Identifier: Apache-2.0
//
// Who answers what a filter of seccomp asks: the agent at `listenerPath`, or the caller.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/toolkit/container/bundle.h"
#include "tests/unit/toolkit/container/running.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;

class SeccompAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  // `more`: members of `linux.seccomp`.
  static Config Asking(const std::string& more) {
    return {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
              {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}])" +
                          more + "}",
            .top = R"("annotations": {"one": "a\"b"})",
            .script = "mkdir /asked; exit 3"};
  }

  Config AskingAgent() const {
    return Asking(R"(, "listenerPath": ")" + path() + R"(", "listenerMetadata": "for the agent")");
  }

  std::string path() const { return bundle_.path() + "/agent"; }

  Bundle bundle_;
};

struct Told {
  std::string text;
  std::vector<UniqueFd> fds;
};

// All that came over the one connection.
Told AcceptOne(int listener) {
  Told told;
  auto connection = AcceptUnix(listener);
  if (!connection || !*connection) {
    return told;
  }
  std::string part(4096, '\0');
  for (;;) {
    const auto got = RecvWithFds((*connection)->get(), part, told.fds);
    if (!got || got->bytes == 0) {
      EXPECT_TRUE(got && got->end) << "the connection ends with the state";
      return told;
    }
    told.text += part.substr(0, got->bytes);
  }
}

void ExpectAsked(const UniqueFd& listener) {
  pollfd asked{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&asked, 1, -1), 1);
  EXPECT_NE(asked.revents & POLLIN, 0);
}

TEST_F(SeccompAgentTest, IsToldWhoAsks) {
  const auto listening = ListenUnix(path());
  ASSERT_TRUE(listening.has_value());
  auto request = bundle_.RequestOf(AskingAgent());
  ASSERT_TRUE(request.has_value()) << request.error().message;
  request->id = "its id";
  auto made = Make(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const Status started = made->Start();
  ASSERT_TRUE(started) << started.error().message;
  Told told = AcceptOne(listening->get());
  EXPECT_EQ(told.text,
            Format(R"({{"ociVersion":"1.2.0","fds":["seccompFd"],"pid":{},"metadata":)"
                   R"("for the agent","state":{{"ociVersion":"1.2.0","id":"its id","status":)"
                   R"("created","pid":{},"bundle":"{}","annotations":{{"one":"a\"b"}}}}}})",
                   made->pid(), made->pid(), bundle_.path()));
  ASSERT_EQ(told.fds.size(), 1U);
  ExpectAsked(told.fds.front());
  told.fds.clear();  // Nobody answers: ENOSYS.
  EXPECT_EQ(EndOf(made->pid()), "exit 3");
  EXPECT_FALSE(Exists(bundle_.InRoot("/asked")));
}

TEST_F(SeccompAgentTest, IsToldOfOneThatJoins) {
  const Running running(bundle_, {});
  const auto listening = ListenUnix(path());
  ASSERT_TRUE(listening.has_value());
  auto request = running.RequestOf({.script = "mkdir /asked; exit 3"});
  const auto asking = bundle_.RequestOf(AskingAgent());
  ASSERT_TRUE(request && asking);
  request->spec.linux_spec.seccomp = asking->spec.linux_spec.seccomp;
  auto made = Join(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_TRUE(made->Start());
  Told told = AcceptOne(listening->get());
  EXPECT_THAT(told.text, HasSubstr(Format(R"("fds":["seccompFd"],"pid":{},)", made->pid())));
  EXPECT_THAT(told.text, HasSubstr(Format(R"("status":"running","pid":{},)", running.init())));
  ASSERT_EQ(told.fds.size(), 1U);
  ExpectAsked(told.fds.front());
  told.fds.clear();
  EXPECT_EQ(EndOf(made->pid()), "exit 3");
}

TEST_F(SeccompAgentTest, HasToBeThere) {
  auto request = bundle_.RequestOf(AskingAgent());
  ASSERT_TRUE(request.has_value());
  request->id = "id";
  auto made = Make(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const Status started = made->Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kNotFound);
  EXPECT_THAT(started.error().message, HasSubstr(path()));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "its process is gone";
  EXPECT_FALSE(Exists(bundle_.InRoot("/asked")));
}

TEST_F(SeccompAgentTest, IsNamedOrTheCallerIsIt) {
  EXPECT_THAT(bundle_.Run(Asking("")), HasSubstr("INVALID_ARGUMENT: make the filter of "
                                                 "linux.seccomp: it has SCMP_ACT_NOTIFY, and there "
                                                 "is no listenerPath"));
  EXPECT_THAT(bundle_.Run(AskingAgent()), HasSubstr("the container's id, and none was given"));
  auto request = bundle_.RequestOf(Asking(""));
  ASSERT_TRUE(request.has_value());
  request->takes_listener = true;
  auto made = Make(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const Status started = made->Start();
  ASSERT_FALSE(started) << "it did not take it";
  EXPECT_EQ(started.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::container
