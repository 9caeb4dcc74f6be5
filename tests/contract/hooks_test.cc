// SPDX-License-Identifier: Apache-2.0
//
// OCI hooks on the host: run at their points by whoever does that for the backend, or refused.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

class Hooks : public ContractTest {
 protected:
  std::string SaidPath() const { return node().root() + "/" + Id() + ".said"; }

  std::string Said() const { return e2e::ReadText(SaidPath()); }

  /// A hook that says its kind and what it is told of the container, on one line.
  Json Hook(const std::string& kind) const {
    const std::string script = "echo \"" + kind + " $(tr -d '\\n')\" >>" + SaidPath();
    return Json::array(
        {{{"path", "/bin/sh"}, {"args", {"sh", "-c", script}}, {"env", {"PATH=/usr/bin:/bin"}}}});
  }

  Json All() const {
    Json hooks;
    for (const char* kind : {"prestart", "createRuntime", "poststart", "poststop"}) {
      hooks[kind] = Hook(kind);
    }
    return {{"hooks", hooks}};
  }

  /// The kinds, in the order in which they have run.
  std::string Kinds() const {
    std::string kinds;
    std::istringstream lines(Said());
    for (std::string line; std::getline(lines, line);) {
      kinds += line.substr(0, line.find(' ')) + " ";
    }
    return kinds;
  }

  static bool IsRefused(const Result<pb::CreateTaskResponse>& created) {
    return TheSetup().anybodys && !created && created.error().code == Code::kUnimplemented;
  }
};

TEST_P(Hooks, AreRunAtTheirPointsOrRefused) {
  Box& box = Announced({.spec = All()});
  const auto created = box.Create();
  if (IsRefused(created)) {
    GTEST_SKIP() << "not supported: " << created.error().message;
  }
  ASSERT_OK(created);
  EXPECT_EQ(Kinds(), "prestart createRuntime ");
  EXPECT_THAT(Said(), HasSubstr("\"" + box.id() + "\""));
  ASSERT_OK(box.Start());
  EXPECT_EQ(Kinds(), "prestart createRuntime poststart ");
  node().KillEngine();
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  EXPECT_EQ(Kinds(), "prestart createRuntime poststart poststop ");
}

/// The Start is over when its hooks are, whoever dies: each is run once.
TEST_P(Hooks, OfAStartAreRunOnceOverARestart) {
  const std::string gate = SaidPath() + ".gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  const auto hook = [&](const std::string& script) -> Json {
    return {{"path", "/bin/sh"},
            {"args", {"sh", "-c", "exec 3>>" + SaidPath() + "; " + script}},
            {"env", {"PATH=/usr/bin:/bin"}}};
  };
  const Json hooks = {
      {"poststart",
       {hook("echo first >&3"), hook("echo begun >&3; cat " + gate), hook("echo third >&3")}}};
  Box& box = Announced({.spec = {{"hooks", hooks}}});
  const auto created = box.Create();
  if (IsRefused(created)) {
    unlink(gate.c_str());
    GTEST_SKIP() << "not supported: " << created.error().message;
  }
  ASSERT_OK(created);
  pb::StartRequest request;
  request.set_id(box.id());
  auto starting = box.client().Begin<pb::StartResponse>("Start", request);
  ASSERT_OK(starting);
  ASSERT_TRUE(e2e::Eventually([&] { return Said() == "first\nbegun\n"; })) << Said();
  node().KillEngine();
  e2e::WriteText(gate, "go\n");
  EXPECT_OK(starting->Get());
  EXPECT_TRUE(e2e::Eventually([&] { return Said() == "first\nbegun\nthird\n"; })) << Said();
  const auto state = box.State();
  ASSERT_OK(state);
  EXPECT_EQ(state->status(), pb::RUNNING);
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  EXPECT_EQ(Said(), "first\nbegun\nthird\n");
  unlink(gate.c_str());
}

TEST_P(Hooks, ThatFailFailTheCreateOrAreRefused) {
  Json spec = All();
  spec["hooks"]["createRuntime"] = Json::array({{{"path", "/bin/false"}}});
  Box& box = Announced({.spec = spec});
  const auto created = box.Create();
  if (IsRefused(created)) {
    GTEST_SKIP() << "not supported: " << created.error().message;
  }
  EXPECT_FALSE(created.has_value());
  EXPECT_TRUE(Kinds().starts_with("prestart ")) << Kinds();
  EXPECT_CODE(box.State(), kNotFound);
}

TEST_P(Hooks, ThatFailAtTheStartLeaveWhatCanBeDeleted) {
  Json spec = All();
  spec["hooks"]["poststart"] = Json::array({{{"path", "/bin/false"}}});
  Box& box = Announced({.spec = spec});
  const auto created = box.Create();
  if (IsRefused(created)) {
    GTEST_SKIP() << "not supported: " << created.error().message;
  }
  ASSERT_OK(created);
  // crun only logs it.
  if (box.Start()) {
    EXPECT_OK(box.Kill(SIGKILL));
  }
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  EXPECT_EQ(Got(box.State()).status(), pb::STOPPED);
  EXPECT_OK(box.Delete());
  EXPECT_CODE(box.State(), kNotFound);
  EXPECT_OK(box.Create()) << "its id is free";
}

INSTANTIATE_CONTRACT(Hooks);

}  // namespace
}  // namespace gantry::contract
