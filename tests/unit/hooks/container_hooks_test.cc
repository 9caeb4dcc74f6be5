// SPDX-License-Identifier: Apache-2.0
//
// A container's hooks, with programs of the host that tell what they got.
#include "core/hooks/container_hooks.h"

#include <signal.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/toolkit/names_in.h"

namespace gantry::hooks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr const char* kId = "one";

class ContainerHooksTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    bundle_ = dir_.path() + "/bundle";
    ASSERT_EQ(mkdir(bundle_.c_str(), 0700), 0);
  }

  /// A script that writes to the file `said`.
  std::string Script(const std::string& text, const std::string& name = "hook") const {
    const std::string path = dir_.path() + "/" + name;
    EXPECT_TRUE(WriteFile(path, "#!/bin/sh\nexec 3>>" + SaidPath() + "\n" + text + "\n", 0755));
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  std::string SaidPath() const { return dir_.path() + "/said"; }

  std::string Said() const { return ReadFile(SaidPath(), 65536).value_or(""); }

  ContainerHooks Make(const Json& hooks) {
    ContainerHooks made(*ContainerId::Parse(kId), bundle_, context_);
    const Json spec = {{"hooks", hooks}, {"annotations", {{"key", "value"}}}};
    const Status read = made.Read(spec.dump());
    EXPECT_TRUE(read) << read.error().message;
    return made;
  }

  /// Of a Create that has to fail.
  std::string Failure(const Json& hook) {
    const Status ran = Make({{"createRuntime", {hook}}}).Create({1});
    EXPECT_FALSE(ran);
    code_ = ran ? Code::kOk : ran.error().code;
    EXPECT_EQ(context_.Alive(), 0U);
    EXPECT_THAT(NamesIn(bundle_), IsEmpty());
    return ran ? "" : ran.error().message;
  }

  static std::string Tag(const std::string& what) {
    return Format("{}/{:016x}", what, Fingerprint("", Fingerprint(kId)));
  }

  os::TempDir dir_;
  std::string bundle_;
  FakeSandboxContext context_;
  Code code_ = Code::kOk;
};

TEST_F(ContainerHooksTest, AreRunInTheirOrder) {
  const std::string path = Script("echo \"$1\" >&3");
  Json hooks;
  for (const char* kind : {"poststop", "poststart", "createRuntime", "prestart"}) {
    hooks[kind] = {{{"path", path}, {"args", {"hook", Format("{}1", kind)}}},
                   {{"path", path}, {"args", {"hook", Format("{}2", kind)}}}};
  }
  ContainerHooks made = Make(hooks);
  EXPECT_TRUE(made.Create({1}));
  EXPECT_EQ(Said(), "prestart1\nprestart2\ncreateRuntime1\ncreateRuntime2\n");
  EXPECT_TRUE(made.Start({1}));
  EXPECT_THAT(Said(), HasSubstr("createRuntime2\npoststart1\npoststart2\n"));
  made.Delete();
  EXPECT_THAT(Said(), HasSubstr("poststart2\npoststop1\npoststop2\n"));
  EXPECT_THAT(NamesIn(bundle_), UnorderedElementsAre("poststart", "poststop"));
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(ContainerHooksTest, GetTheStateEnvironmentAndDirectory) {
  const std::string path = Script("cat >&3; echo \" $A $(env | wc -l) $PWD\" >&3");
  ContainerHooks made = Make(
      {{"createRuntime", {{{"path", path}, {"env", {"A=b"}}}}}, {"poststop", {{{"path", path}}}}});
  ASSERT_TRUE(made.Create({42}));
  const std::string said = Said();
  const size_t end = said.rfind('}') + 1;
  EXPECT_EQ(Json::parse(said.substr(0, end)), (Json{{"ociVersion", "1.2.0"},
                                                    {"id", kId},
                                                    {"status", "creating"},
                                                    {"pid", 42},
                                                    {"bundle", bundle_},
                                                    {"annotations", {{"key", "value"}}}}));
  // PWD and what the shell sets by itself.
  EXPECT_THAT(said.substr(end), MatchesRegex(" b [0-9] " + bundle_ + "\n"));
  made.Delete();
  EXPECT_THAT(Said().substr(said.size()),
              AllOf(HasSubstr(R"("status":"stopped")"), Not(HasSubstr("pid"))));
}

TEST_F(ContainerHooksTest, AreCalledAsTheSpecSays) {
  // A program of many names that goes by the first argument.
  const auto busybox = FindInPath("/bin:/usr/bin", "busybox");
  ASSERT_TRUE(busybox);
  const std::string out = dir_.path() + "/out";
  const Json hook = {{"path", *busybox}, {"args", {"cp", "/dev/stdin", out}}};
  const Status ran = Make({{"prestart", {hook}}}).Create({1});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_THAT(ReadFile(out, 4096).value_or(""), HasSubstr(R"("id":"one")"));
}

TEST_F(ContainerHooksTest, ThatFailSayWithWhatAndWhy) {
  const std::string path = Script("echo begins; echo 'no address left' >&2; exit 3");
  EXPECT_EQ(Failure({{"path", path}}), "run hook '" + path +
                                           "' (createRuntime): it ended with 3: begins\nno "
                                           "address left");
  EXPECT_EQ(code_, Code::kInternal);
  EXPECT_EQ(Failure({{"path", Script("kill -9 $$")}}),
            "run hook '" + path + "' (createRuntime): it ended with 137: it has said nothing");
}

TEST_F(ContainerHooksTest, ThatFailAreTheLast) {
  const std::string good = Script("echo good >&3", "good");
  const std::string bad = Script("exit 1", "bad");
  EXPECT_FALSE(Make({{"createRuntime", {{{"path", bad}}, {{"path", good}}}}}).Create({1}));
  EXPECT_EQ(Said(), "");
}

TEST_F(ContainerHooksTest, ThatAreNotThereAreTheSpecsFault) {
  EXPECT_EQ(Failure({{"path", "/no/such/hook"}}),
            "run hook '/no/such/hook' (createRuntime): no such executable file on this node");
  EXPECT_EQ(code_, Code::kInvalidArgument);
}

TEST_F(ContainerHooksTest, ThatHangAreKilledAfterTheirTime) {
  const std::string path = Script("echo waits; exec sleep 1000");
  EXPECT_THAT(Failure({{"path", path}, {"timeout", 1}}),
              HasSubstr("(createRuntime): it was killed after 1000 ms: "));
  EXPECT_EQ(code_, Code::kDeadlineExceeded);
}

TEST_F(ContainerHooksTest, LeaveTheirCallTimeToUndoWhatItHasDone) {
  context_.time_left = std::chrono::milliseconds(40);
  EXPECT_THAT(Failure({{"path", Script("exec sleep 1000")}}),
              HasSubstr("it was killed after 30 ms"));
}

TEST_F(ContainerHooksTest, OfStartFailItWithTheFirstThatFails) {
  const Json both = {{{"path", Script("echo on >&3; echo oops; exit 1")}},
                     {{"path", Script("echo never >&3", "second")}}};
  const Status ran = Make({{"poststart", both}}).Start({1});
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("(poststart): it ended with 1: oops"));
  EXPECT_EQ(Said(), "on\n");
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(ContainerHooksTest, OfDeleteAreAllRunWhateverComesOfThem) {
  const Json both = {{{"path", Script("echo on >&3; echo oops; exit 1")}},
                     {{"path", Script("echo on >&3", "second")}}};
  Make({{"poststop", both}}).Delete();
  EXPECT_EQ(Said(), "on\non\n");
  EXPECT_THAT(context_.log, ElementsAre(HasSubstr("(poststop): it ended with 1: oops")));
}

TEST_F(ContainerHooksTest, AfterTheEndAreRunOnceWhateverComes) {
  const std::string path = Script("echo end >&3");
  const Json hooks = {{"poststop", {{{"path", path}}}}};
  ContainerHooks made = Make(hooks);
  made.Delete();
  made.Delete();
  ContainerHooks next = Make(hooks);
  next.Recover();
  next.Delete();
  EXPECT_EQ(Said(), "end\n");
  // Made anew in the same bundle, as after a Create that was cut short.
  EXPECT_TRUE(next.Begin());
  next.Delete();
  EXPECT_EQ(Said(), "end\nend\n");
}

TEST_F(ContainerHooksTest, ThatAnEngineBeforeHasStartedAreWaitedFor) {
  const std::string path = Script("echo \"$1\" >&3");
  const Json hooks = {{"poststop",
                       {{{"path", path}, {"args", {"hook", "first"}}},
                        {{"path", path}, {"args", {"hook", "second"}}},
                        {{"path", path}, {"args", {"hook", "third"}}}}}};
  // As it was killed while the second ran.
  ASSERT_TRUE(WriteFile(bundle_ + "/poststop", "1", 0600));
  SpawnRequest second;
  second.argv = {path, "second"};
  context_.LeaveBehind(Tag("poststop1"), *context_.Spawn(std::move(second)));
  ContainerHooks next = Make(hooks);
  next.Recover();
  next.Delete();
  EXPECT_EQ(Said(), "second\nthird\n");
}

TEST_F(ContainerHooksTest, OfAStartThatWasCutShortAreRunOnce) {
  const std::string path = Script("echo \"$1\" >&3");
  const Json hooks = {{"poststart",
                       {{{"path", path}, {"args", {"hook", "first"}}},
                        {{"path", path}, {"args", {"hook", "second"}}},
                        {{"path", path}, {"args", {"hook", "third"}}}}}};
  ContainerHooks made = Make(hooks);
  ASSERT_TRUE(made.Begin());
  EXPECT_TRUE(made.IsStarting());
  // As it was killed while the second ran.
  ASSERT_TRUE(WriteFile(bundle_ + "/poststart", "1", 0600));
  SpawnRequest second;
  second.argv = {path, "second"};
  context_.LeaveBehind(Tag("poststart1"), *context_.Spawn(std::move(second)));
  ContainerHooks next = Make(hooks);
  next.Recover();
  EXPECT_TRUE(next.IsStarting());
  EXPECT_TRUE(next.Start({1}));
  EXPECT_EQ(Said(), "second\nthird\n");
  EXPECT_FALSE(next.IsStarting());
  EXPECT_TRUE(next.Start({1}));
  EXPECT_EQ(Said(), "second\nthird\n");
}

TEST_F(ContainerHooksTest, OfAStartThatFailedAreRunAgain) {
  const std::string path = Script("echo on >&3; exit 1");
  ContainerHooks made = Make({{"poststart", {{{"path", path}}}}});
  ASSERT_TRUE(made.Begin());
  EXPECT_FALSE(made.Start({1}));
  EXPECT_TRUE(made.IsStarting());
  EXPECT_FALSE(made.Start({1}));
  EXPECT_EQ(Said(), "on\non\n");
}

/// Its OCI runtime runs them, or an engine has made it that did not count them.
TEST_F(ContainerHooksTest, ThatWereNotBegunAreNotLeft) {
  const std::string path = Script("exit 0");
  const Json hooks = {{"poststart", {{{"path", path}}}}};
  EXPECT_FALSE(Make(hooks).IsStarting());
  ContainerHooks none = Make(Json::object());
  ASSERT_TRUE(none.Begin());
  EXPECT_FALSE(none.IsStarting());
}

TEST_F(ContainerHooksTest, ThatAnEngineBeforeHasStartedForAStartAreEndedWithIt) {
  const Json hooks = {{"poststart", {{{"path", "/bin/sleep"}, {"args", {"sleep", "1000"}}}}}};
  ASSERT_TRUE(Make(hooks).Begin());
  SpawnRequest left;
  left.argv = {"/bin/sleep", "1000"};
  context_.LeaveBehind(Tag("poststart0"), *context_.Spawn(std::move(left)));
  ContainerHooks next = Make(hooks);
  next.Recover();
  EXPECT_EQ(context_.Alive(), 1U);
  next.Delete();
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(ContainerHooksTest, ThatAnEngineBeforeHasStartedForACreateAreEnded) {
  SpawnRequest left;
  left.argv = {"/bin/sleep", "1000"};
  context_.LeaveBehind(Tag("hook"), *context_.Spawn(std::move(left)));
  ContainerHooks next = Make(Json::object());
  next.Recover();
  EXPECT_EQ(context_.Alive(), 1U);
  next.Delete();
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(ContainerHooksTest, OfInsideAreTheBackends) {
  const Json one = {{{"path", "/no/such/program"}}};
  ContainerHooks made = Make({{"createContainer", one}, {"startContainer", one}});
  EXPECT_TRUE(made.inside().create_container);
  EXPECT_TRUE(made.inside().start_container);
  EXPECT_TRUE(made.Create({1}));
  EXPECT_TRUE(made.Start({1}));
  EXPECT_FALSE(Make(Json::object()).inside().create_container);
}

TEST_F(ContainerHooksTest, ForRuncAloneAreLeftOut) {
  const Json one = {{{"path", "/no/such/nvidia-container-runtime-hook"}}};
  EXPECT_TRUE(Make({{"prestart", one}}).Create({1}));
  EXPECT_THAT(context_.log, ElementsAre(HasSubstr("is for runc, and left out")));
}

TEST(HooksTest, AreNotThereInMostSpecs) {
  for (const char* spec : {"{}", R"({"hooks":null})", R"({"hooks":{}})", "nonsense"}) {
    const auto read = ReadHooks(spec);
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->create_runtime.empty());
  }
}

TEST(HooksTest, ThatNoneCanBeAreRefused) {
  const auto complaint = [](const Json& hook) {
    const auto read = ReadHooks(Json{{"hooks", {{"prestart", {hook}}}}}.dump());
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(complaint("/bin/true"), "check hooks.prestart[0]: must be an object");
  EXPECT_EQ(complaint({{"args", {"x"}}}), "check hooks.prestart[0]: its path must be absolute");
  EXPECT_EQ(complaint({{"path", "true"}}), "check hooks.prestart[0]: its path must be absolute");
  EXPECT_EQ(complaint({{"path", "/x"}, {"args", {1}}}),
            "check hooks.prestart[0]: args and env must be lists of strings");
  EXPECT_EQ(complaint({{"path", "/x"}, {"env", "A=b"}}),
            "check hooks.prestart[0]: args and env must be lists of strings");
  EXPECT_EQ(complaint({{"path", "/x"}, {"timeout", 0}}),
            "check hooks.prestart[0]: its timeout must be a number of seconds above 0");
  EXPECT_EQ(complaint({{"path", "/x"}, {"timeout", nullptr}}), "");
}

}  // namespace
}  // namespace gantry::hooks
