// SPDX-License-Identifier: Apache-2.0
//
// OCI hooks that the core runs for a backend: at the point at which it stands, by the keeper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/link/messages.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CoreHooks : public TaskTest {
 protected:
  CoreHooks() {
    // What the keeper starts ends at once.
    keeper_.when_spawned = [this] {
      const ProcessId process = keeper_.named.at(keeper_.spawns.back().name);
      engine_->loop().Post([this, process] { keeper_.End(process, wait_status_); });
    };
    backend_.UseContext([this](ContainerContext& context, bool recovered) -> Status {
      if (recovered) {
        return runs_at_recovery_ ? context.RunHooks(HookPoint::kDelete, {}) : Status();
      }
      GANTRY_TRY(inside_, context.BeginHooks());
      return context.RunHooks(HookPoint::kCreate, {4711});
    });
  }

  void Specify(const std::string& id, const std::string& hooks) {
    const std::string spec = R"({"ociVersion":"1.2.0","process":{"args":["/bin/true"],"cwd":"/"},)"
                             R"("root":{"path":"rootfs"},"linux":{},"hooks":)" +
                             hooks + "}";
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/" + id + "/config.json", spec, 0644));
  }

  std::vector<std::string> Spawned() const {
    std::vector<std::string> words;
    for (const link::Spawn& spawn : keeper_.spawns) {
      words.push_back(spawn.argv.at(1));
    }
    return words;
  }

  static constexpr const char* kAll =
      R"({"createRuntime":[{"path":"/bin/true","args":["true","create"]}],)"
      R"("createContainer":[{"path":"/bin/true","args":["true","inside"]}],)"
      R"("poststop":[{"path":"/bin/true","args":["true","stop"]}]})";

  int wait_status_ = 0;
  bool runs_at_recovery_ = true;
  InsideHooks inside_;
};

TEST_F(CoreHooks, RunWhereTheBackendStands) {
  const std::string bundle = Announce("c1");
  Specify("c1", kAll);
  const auto created = Create("c1");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_THAT(Spawned(), ElementsAre("create"));
  EXPECT_EQ(keeper_.spawns.front().cwd, bundle);
  EXPECT_TRUE(inside_.create_container);
  EXPECT_FALSE(inside_.start_container);
}

TEST_F(CoreHooks, OfItsEndAreRunByTheNextEngineToo) {
  Announce("c1");
  Specify("c1", kAll);
  ASSERT_TRUE(Create("c1"));
  RestartEngine();
  Settle();
  EXPECT_THAT(Spawned(), ElementsAre("create", "stop"));
  RestartEngine();
  Settle();
  EXPECT_THAT(Spawned(), ElementsAre("create", "stop")) << "once";
}

/// It has started, but the engine was killed before its hooks had been run.
TEST_F(CoreHooks, OfAStartThatWasCutShortMakeItComeAgain) {
  runs_at_recovery_ = false;
  Announce("c1");
  Specify("c1", R"({"poststart":[{"path":"/bin/true"}]})");
  ASSERT_TRUE(Create("c1"));
  backend_.SetStarted("c1");
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::CREATED);
  EXPECT_TRUE(Start("c1", true));
  EXPECT_EQ(backend_.Count("start c1"), 1U);
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(CoreHooks, ThatAreNotThereLeaveAStartAsItIs) {
  runs_at_recovery_ = false;
  Announce("c1");
  Specify("c1", kAll);
  ASSERT_TRUE(Create("c1"));
  backend_.SetStarted("c1");
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
}

TEST_F(CoreHooks, ThatFailFailTheCall) {
  Announce("c1");
  Specify("c1", kAll);
  wait_status_ = 3 << 8;
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kInternal);
  EXPECT_THAT(MessageOf(created),
              HasSubstr("run hook '/bin/true' (createRuntime): it ended with 3"));
}

TEST_F(CoreHooks, ThatCannotBeAreRefusedBeforeAnythingRuns) {
  Announce("c1");
  Specify("c1", R"({"createRuntime":[{"path":"true"}]})");
  const auto created = Create("c1");
  EXPECT_EQ(CodeOf(created), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(created), HasSubstr("hooks.createRuntime[0]: its path must be absolute"));
  EXPECT_THAT(keeper_.spawns, IsEmpty());
}

}  // namespace
}  // namespace gantry::task
