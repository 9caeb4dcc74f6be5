// SPDX-License-Identifier: Apache-2.0
//
// A container's life through the agent: containers are made here, by the agent's own code.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class AgentContainers : public GuestTest {
 protected:
  template <class Request>
  Result<typename Request::Answer> Call(const Request& request) {
    return host_->client().Call(request, Soon());
  }

  /// As `List` has it; empty: it is not there.
  std::vector<protocol::ProcessReport> ProcessesOf(const std::string& id) {
    const auto list = Call(protocol::List{});
    for (const auto& one : list->containers) {
      if (one.container == id) {
        return one.processes;
      }
    }
    return {};
  }
};

TEST_F(AgentContainers, RunAndTellHowTheyEnd) {
  const Made made = Run({.script = "echo hello; exit 7"});
  EXPECT_EQ(ReadStream(made.out), "hello\n");
  EXPECT_EQ(host_->WaitForExit(made.id), 7U);
  EXPECT_EQ(ProcessesOf(made.id).at(0).status, 7U) << "and it is kept until Delete";
  EXPECT_TRUE(Call(protocol::Delete{.container = made.id, .exec = ""}));
  EXPECT_TRUE(ProcessesOf(made.id).empty());
  EXPECT_TRUE(Call(protocol::Delete{.container = made.id, .exec = ""})) << "again";
}

TEST_F(AgentContainers, WaitForTheirStart) {
  const Made made = Create({.script = "echo ran"});
  EXPECT_EQ(ProcessesOf(made.id).at(0).state,
            static_cast<uint32_t>(protocol::ProcessState::kCreated));
  EXPECT_TRUE(Call(protocol::Start{.container = made.id, .exec = ""}));
  EXPECT_EQ(ReadStream(made.out), "ran\n");
  host_->WaitForExit(made.id);
  EXPECT_EQ(Call(protocol::Start{.container = made.id, .exec = ""}).error().code,
            Code::kFailedPrecondition);
}

TEST_F(AgentContainers, ThatRunAreStartedAgainWithoutHarm) {
  const Made made = Run({.script = "read line"}, true);
  EXPECT_TRUE(Call(protocol::Start{.container = made.id, .exec = ""}));
  EndStream(made.in);
  EXPECT_EQ(host_->WaitForExit(made.id), 1U);
}

TEST_F(AgentContainers, TakeSignals) {
  const Made one = Run({.script = "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done"});
  EXPECT_EQ(ReadUntil(one.out, "up"), "up\n");
  EXPECT_TRUE(Call(protocol::Signal{.container = one.id, .exec = "", .signal = SIGTERM}));
  EXPECT_EQ(host_->WaitForExit(one.id), 5U);
  EXPECT_EQ(Call(protocol::Signal{.container = one.id, .exec = "", .signal = SIGTERM}).error().code,
            Code::kNotFound);
  const Made all = Run({.script = "sleep 1000 & echo up; wait"});
  EXPECT_EQ(ReadUntil(all.out, "up"), "up\n");
  EXPECT_TRUE(
      Call(protocol::Signal{.container = all.id, .exec = "", .signal = SIGKILL, .all = true}));
  EXPECT_EQ(host_->WaitForExit(all.id), 128U + SIGKILL);
  EXPECT_EQ(Call(protocol::Signal{.container = all.id, .exec = "", .signal = 65}).error().code,
            Code::kInvalidArgument);
}

TEST_F(AgentContainers, AreDeletedWhileTheyRunAndTheirEndIsToldBefore) {
  const Made made = Run({.script = "echo up; sleep 1000"});
  EXPECT_EQ(ReadUntil(made.out, "up"), "up\n");
  EXPECT_TRUE(Call(protocol::Delete{.container = made.id, .exec = ""}));
  EXPECT_TRUE(host_->HasExited(made.id));
  EXPECT_EQ(host_->WaitForExit(made.id), 128U + SIGKILL);
}

TEST_F(AgentContainers, AreDeletedAtTheirGate) {
  const Made made = Create({.script = "echo never"});
  EXPECT_TRUE(Call(protocol::Delete{.container = made.id, .exec = ""}));
  EXPECT_EQ(ReadStream(made.out), "");
}

TEST_F(AgentContainers, WhoseProgramIsMissingLeaveNothingAndTheirIdIsFree) {
  const std::string id = host_->NewId();
  container::Config config{.script = "exit 0"};
  std::string spec = container::Bundle::TextOf(config);
  spec.replace(spec.find("\"sh\""), 4, "\"nosuch\"");
  for (int i = 0; i < 3; ++i) {
    const auto failed = Call(protocol::CreateContainer{
        .container = id, .bundle = bundle_.path(), .spec_json = spec, .streams = {}});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kNotFound);
    EXPECT_THAT(failed.error().message, HasSubstr("nosuch"));
  }
  EXPECT_TRUE(ProcessesOf(id).empty());
  const auto made = Call(protocol::CreateContainer{.container = id,
                                                   .bundle = bundle_.path(),
                                                   .spec_json = container::Bundle::TextOf(config),
                                                   .streams = {}});
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(AgentContainers, AreRefusedByName) {
  const auto create = [&](const std::string& id, const std::string& spec,
                          const protocol::Streams& streams = {}) {
    return Call(protocol::CreateContainer{
        .container = id, .bundle = bundle_.path(), .spec_json = spec, .streams = streams});
  };
  EXPECT_EQ(create("../x", "{}").error().code, Code::kInvalidArgument);
  EXPECT_EQ(create(host_->NewId(), "{").error().code, Code::kInvalidArgument);
  EXPECT_EQ(create(host_->NewId(), std::string(100'000, '[')).error().code, Code::kInvalidArgument);
  protocol::Streams both;
  both.terminal = host_->Token();
  both.output = host_->Token();
  EXPECT_EQ(create(host_->NewId(), "{}", both).error().code, Code::kInvalidArgument);
  const Made made = Create({.script = "exit 0"});
  EXPECT_EQ(create(made.id, "{}").error().code, Code::kAlreadyExists);
  EXPECT_EQ(Call(protocol::Start{.container = "nobody", .exec = ""}).error().code, Code::kNotFound);
}

TEST_F(AgentContainers, ThatAreMadeAtOnceAreApart) {
  std::vector<Made> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(Create({.script = "read line; echo \"$line\""}, true));
  }
  for (const Made& made : all) {
    EXPECT_TRUE(Call(protocol::Start{.container = made.id, .exec = ""}));
    WriteStream(made.in, made.id + "\n");
    EndStream(made.in);
  }
  for (const Made& made : all) {
    EXPECT_EQ(ReadStream(made.out), made.id + "\n");
    EXPECT_EQ(host_->WaitForExit(made.id), 0U);
  }
}

}  // namespace
}  // namespace gantry::vmm
