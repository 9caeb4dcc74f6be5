// SPDX-License-Identifier: Apache-2.0
//
// The host's engine goes and comes, and the guest does not mind.
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;
using AgentConnection = GuestTest;

/// Of a host that is newer.
struct UnknownCall {
  static constexpr auto kKind = static_cast<protocol::Kind>(99);
  using Answer = protocol::Nothing;

  void Each(this auto&, auto&&) {}
};

TEST_F(AgentConnection, IsDialledAgainAndAgainAndNoEndIsLost) {
  for (int i = 0; i < 20; ++i) {
    const Made made = Run({.script = Format("read line; exit {}", i)}, true);
    host_->Disconnect();
    EndStream(made.in);
    EXPECT_EQ(ReadStream(made.out), "") << "streams go on without a host";
    ASSERT_TRUE(host_->Connect());
    uint32_t status = 999;
    while (status == 999) {
      const auto list = host_->client().Call(protocol::List{}, Soon());
      ASSERT_TRUE(list) << list.error().message;
      const auto found =
          std::ranges::find(list->containers, made.id, &protocol::ContainerReport::container);
      ASSERT_NE(found, list->containers.end());
      if (found->processes.at(0).state == static_cast<uint32_t>(protocol::ProcessState::kExited)) {
        status = found->processes.at(0).status;
      }
    }
    EXPECT_EQ(status, static_cast<uint32_t>(i));
    ASSERT_TRUE(host_->client().Call(protocol::Delete{.container = made.id, .exec = ""}, Soon()));
  }
}

TEST_F(AgentConnection, SaysWhatAnUnknownCallIs) {
  const auto answer = host_->client().Call(UnknownCall{}, Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnimplemented);
  EXPECT_THAT(answer.error().message, HasSubstr("protocol version 1, does not know kind 99"));
}

TEST_F(AgentConnection, IsNotHeldUpByWhatHangs) {
  auto hangs = std::async(std::launch::async, [&] {
    return host_->client().Call(protocol::Attach{.mounts = {}, .wait_ms = UINT32_MAX},
                                std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
  });
  const Made made = Run({.script = "echo quick"});
  EXPECT_EQ(ReadStream(made.out), "quick\n");
  EXPECT_EQ(hangs.get().error().code, Code::kDeadlineExceeded);
}

TEST_F(AgentConnection, CarriesWhatIsForTheMachine) {
  EXPECT_TRUE(host_->client().Call(protocol::SetUp{.hostname = "pod"}, Soon()));
  EXPECT_EQ(host_->client().Call(protocol::SetUp{.hostname = "bad"}, Soon()).error().code,
            Code::kInvalidArgument);
  EXPECT_TRUE(host_->client().Call(protocol::Attach{.mounts = {{}, {}}, .wait_ms = 0}, Soon()));
  EXPECT_TRUE(host_->client().Call(protocol::Detach{.targets = {"/x"}}, Soon()));
  const auto online = host_->client().Call(protocol::Online{.cpus = 3, .wait_ms = 0}, Soon());
  ASSERT_TRUE(online);
  EXPECT_EQ(online->cpus, 3U);
  EXPECT_EQ(host_->Machine(), "set up pod\nattach 2\ndetach 1\nonline 3\n");
}

TEST_F(AgentConnection, EndsBehindWhatProcessesHaveSaidLast) {
  // More than what is on its way without a reader, and less than what stops the process.
  constexpr size_t kBytes = 230'000;
  const Made made = Run({.script = Format("exec busybox head -c {} /dev/zero", kBytes)});
  EXPECT_EQ(host_->WaitForExit(made.id), 0U);
  std::promise<void> waits;
  AgentEvents listener;
  listener.log = [&](const std::string& line) {
    if (line.contains("the host has not read")) {
      waits.set_value();
    }
  };
  host_->Hear(std::move(listener));
  const auto answer = host_->client().Call(protocol::Shutdown{}, Soon());
  EXPECT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(waits.get_future().wait_until(Soon()), std::future_status::ready)
      << "it is off, and there was more to be read";
  EXPECT_EQ(ReadStream(made.out).size(), kBytes);
  host_->Hear({});
}

TEST_F(AgentConnection, EndsWithTheMachine) {
  Made made = Run({.script = "echo up; sleep 1000"});
  EXPECT_EQ(ReadUntil(made.out, "up"), "up\n");
  EXPECT_TRUE(host_->client().Call(protocol::Delete{.container = made.id, .exec = ""}, Soon()));
  EXPECT_EQ(ReadStream(made.out), "");
  made.out.reset();
  const auto answer = host_->client().Call(protocol::Shutdown{}, Soon());
  EXPECT_TRUE(answer) << answer.error().message;
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(host_->agent()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ended.si_status, 42) << "the machine is off";
  EXPECT_EQ(host_->Machine(), "sync\n");
}

}  // namespace
}  // namespace gantry::vmm
