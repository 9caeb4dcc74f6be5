// SPDX-License-Identifier: Apache-2.0
//
// What a sentry is asked when its sandbox is saved or restored: nothing twice, and each Pause
// has its Resume.
#include <algorithm>
#include <mutex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/os/fs.h"
#include "plugins/gvisor/checkpoint/image.h"
#include "plugins/gvisor/sentry/sentry.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

class CheckpointTest : public testing::Test {
 protected:
  static SentryState Started() { return {.started = true, .wanted = {}, .stopped = false}; }

  std::shared_ptr<Sentry> Make() {
    return std::make_shared<Sentry>(context_, "root", socket_, [this](const SentryState& state) {
      saved_ = state;
      return Status();
    });
  }

  std::shared_ptr<Sentry> Recovered(SentryState state) {
    auto sentry = Make();
    EXPECT_TRUE(sentry->Recover(std::move(state), Soon()));
    asked_.clear();
    return sentry;
  }

  Status Save(Sentry& sentry, bool ends = false, Status then = {}) {
    const auto saved = [this, then] {
      asked_.emplace_back("saved");
      return then;
    };
    return sentry.Checkpoint(CheckpointArg("build"), image_.Fds(), saved, ends, Soon());
  }

  FakeAnswer Answer(const Json& request, size_t fds) {
    const std::lock_guard lock(mutex_);
    const std::string method = request["method"];
    const std::string name = method.substr(method.find('.') + 1);
    // It never has an answer.
    if (name == "Wait") {
      return {};
    }
    asked_.push_back(fds == 0 ? name : Format("{} {}", name, fds));
    arg_ = request["arg"];
    return name == refused_ ? FakeAnswer::Refusing("no space left on device")
                            : FakeAnswer::Of(Json::object());
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string socket_ = folder_.path() + "/sentry.sock";
  FakeSandboxContext context_;
  Image image_ = MakeImage(folder_.path()).value();
  SentryState saved_;
  /// Guards what follows, while the sentry is asked.
  std::mutex mutex_;
  std::vector<std::string> asked_;
  Json arg_;
  std::string refused_;
  FakeSentry server_{socket_, [this](const Json& request, std::vector<UniqueFd>& fds) {
                       return Answer(request, fds.size());
                     }};
};

TEST_F(CheckpointTest, HoldsTheSandboxStillUntilItIsSaved) {
  const auto sentry = Recovered(Started());
  ASSERT_TRUE(Save(*sentry));
  EXPECT_THAT(asked_, ElementsAre("Pause", "Checkpoint 3", "saved", "Resume"));
  EXPECT_FALSE(saved_.stopped);
  EXPECT_THAT(saved_.wanted, IsEmpty());
}

TEST_F(CheckpointTest, NeverTellsTheSentryToEnd) {
  const auto sentry = Recovered(Started());
  refused_ = "Resume";
  EXPECT_FALSE(Save(*sentry));
  const Json arg = Json::parse(CheckpointArg("build"));
  EXPECT_EQ(arg["Resume"], true);
  EXPECT_EQ(arg["have_pages_file"], true);
  EXPECT_EQ(arg["metadata"]["compression"], "none");
  EXPECT_EQ(arg["metadata"][kBuildKey], "build");
}

TEST_F(CheckpointTest, LeavesAPausedSandboxPaused) {
  const auto sentry = Recovered({.started = true, .wanted = {"root"}, .stopped = true});
  ASSERT_TRUE(Save(*sentry));
  EXPECT_THAT(asked_, ElementsAre("Checkpoint 3", "saved"));
  EXPECT_THAT(saved_.wanted, ElementsAre("root"));
  ASSERT_TRUE(sentry->Resume("root", Soon()));
  EXPECT_THAT(asked_, ElementsAre("Checkpoint 3", "saved", "Resume"));
}

TEST_F(CheckpointTest, ThatFailsLetsItGoOn) {
  const auto sentry = Recovered(Started());
  refused_ = "Checkpoint";
  const Status refused = Save(*sentry, true);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_THAT(asked_, ElementsAre("Pause", "Checkpoint 3", "Resume"));
  refused_.clear();
  asked_.clear();
  EXPECT_EQ(Save(*sentry, true, Fail(Code::kFailedPrecondition, "two")).error().message, "two");
  EXPECT_THAT(asked_, ElementsAre("Pause", "Checkpoint 3", "saved", "Resume"));
}

TEST_F(CheckpointTest, WithTheEndNeverLetsItGoOn) {
  const auto sentry = Recovered(Started());
  ASSERT_TRUE(Save(*sentry, true));
  EXPECT_THAT(asked_, ElementsAre("Pause", "Checkpoint 3", "saved"));
}

TEST_F(CheckpointTest, OfWhatHasNotStartedIsRefused) {
  const auto sentry = Recovered({});
  EXPECT_EQ(Save(*sentry).error().code, Code::kFailedPrecondition);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(CheckpointTest, CutShortIsUndoneByTheNextEngine) {
  const auto sentry = Recovered(Started());
  std::optional<SentryState> meanwhile;
  const auto look = [&] {
    meanwhile = saved_;
    return Status();
  };
  ASSERT_TRUE(sentry->Checkpoint(CheckpointArg("build"), image_.Fds(), look, true, Soon()));
  asked_.clear();
  ASSERT_TRUE(Make()->Recover(*meanwhile, Soon()));
  EXPECT_THAT(asked_, ElementsAre("Resume"));
  meanwhile->wanted.insert("root");
  asked_.clear();
  ASSERT_TRUE(Make()->Recover(*meanwhile, Soon()));
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(CheckpointTest, RunsForAMomentWhereThatIsNeeded) {
  const auto act = [this] {
    asked_.emplace_back("act");
    return Status();
  };
  ASSERT_TRUE(Recovered(Started())->WhileItRuns(act, Soon()));
  EXPECT_THAT(asked_, ElementsAre("act")) << "it does not stand still";
  const auto paused = Recovered({.started = true, .wanted = {"root"}, .stopped = true});
  ASSERT_TRUE(paused->WhileItRuns(act, Soon()));
  EXPECT_THAT(asked_, ElementsAre("Resume", "act", "Pause"));
  EXPECT_TRUE(saved_.stopped);
  EXPECT_THAT(saved_.wanted, ElementsAre("root"));
}

TEST_F(CheckpointTest, StandsStillAgainWhereThatHasFailed) {
  const auto sentry = Recovered({.started = true, .wanted = {"root"}, .stopped = true});
  const Status failed =
      sentry->WhileItRuns([] { return Status(Fail(Code::kDeadlineExceeded, "late")); }, Soon());
  EXPECT_EQ(failed.error().message, "late");
  EXPECT_THAT(asked_, ElementsAre("Resume", "Pause"));
}

TEST_F(CheckpointTest, StandsStillAgainInTheNextEngine) {
  const auto sentry = Recovered({.started = true, .wanted = {"root"}, .stopped = true});
  std::optional<SentryState> meanwhile;
  const auto look = [&] {
    meanwhile = saved_;
    return Status();
  };
  ASSERT_TRUE(sentry->WhileItRuns(look, Soon()));
  asked_.clear();
  ASSERT_TRUE(Make()->Recover(*meanwhile, Soon()));
  EXPECT_THAT(asked_, ElementsAre("Pause"));
  EXPECT_TRUE(saved_.stopped);
}

TEST_F(CheckpointTest, NoPauseThatFailedIsMadeUpForByTheNextEngine) {
  refused_ = "Pause";
  EXPECT_FALSE(Recovered(Started())->Pause("root", Soon()));
  EXPECT_THAT(saved_.wanted, IsEmpty());
}

TEST_F(CheckpointTest, RestoresInPlaceOfTheStart) {
  const auto sentry = Recovered({});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        sentry->StartRoot([] { return NetworkSetup("{}", "{}", {}); }, Soon(), image_.Fds()));
    EXPECT_THAT(asked_, ElementsAre("SetNetworkArgs", "Restore 3")) << "once";
  }
  EXPECT_EQ(arg_, Json::parse(R"({"HavePagesFile":true,"HaveDeviceFile":false})"));
  EXPECT_TRUE(saved_.started);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(CheckpointTest, SaysWhyNothingIsRestored) {
  const auto sentry = Recovered({});
  refused_ = "Restore";
  const Status refused = sentry->StartRoot([] { return std::nullopt; }, Soon(), image_.Fds());
  EXPECT_EQ(refused.error().message,
            "restore the sandbox: containerManager.Restore: no space left on device");
  EXPECT_FALSE(sentry->root_started());
}

}  // namespace
}  // namespace gantry::gvisor
