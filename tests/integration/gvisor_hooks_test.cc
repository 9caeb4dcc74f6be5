// SPDX-License-Identifier: Apache-2.0
//
// OCI hooks: when they run and what they are told, a network that is made by one, failures, and an
// engine that is killed while one runs.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class GvisorHooks : public GvisorTest {
 protected:
  void SetUp() override {
    GvisorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    folder_ = settings().root + "/" + Id("-hooks");
    fs::create_directories(rootfs());
    RunProgram({"sh", "-c",
                "cd " + rootfs() +
                    " && mkdir bin dev proc run sys && cp $(command -v busybox) bin "
                    "&& for one in sh cat ip sleep; do ln -s busybox bin/$one; done"});
    log_begin_ = EngineLog().size();
  }

  void TearDown() override {
    fs::remove_all(folder_);
    GvisorTest::TearDown();
  }

  std::string rootfs() const { return folder_ + "/rootfs"; }

  std::string SaidPath() const { return folder_ + "/said"; }

  std::string Said() const { return ReadText(SaidPath()); }

  static std::string EngineLog() { return ReadText(settings().run_dir + "/gantry.log"); }

  std::string Logged() const { return EngineLog().substr(log_begin_); }

  /// A hook that is a script; what it writes to descriptor 3 is in `Said`.
  Json Script(const std::string& text) {
    const std::string path = folder_ + "/hook" + std::to_string(++scripts_);
    WriteText(path, "#!/bin/sh\nexec 3>>" + SaidPath() + "\n" + text + "\n");
    fs::permissions(path, fs::perms(0755));
    return {{"path", path}, {"env", {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", Mark()}}};
  }

  /// The words of `ctr run` with a spec of containerd's that has these hooks.
  Words Hooked(const std::string& id, const Json& hooks, const std::string& script,
               const Json& annotations = Json::object(), const Words& flags = {"--rm"}) {
    Json spec = Json::parse(Ctr({"oci", "spec"}).out);
    spec["hooks"] = hooks;
    spec["root"]["path"] = rootfs();
    spec["process"]["env"] = {"PATH=/bin"};
    spec["process"]["args"] = {"sh", "-c", script};
    spec["linux"]["cgroupsPath"] = "/" + settings().ns + "/" + id;
    spec["annotations"] = annotations;
    const std::string path = folder_ + "/" + id + ".json";
    WriteText(path, spec.dump());
    Words words{"run",      "--runtime", settings().runtime, "--fifo-dir", node().fifo_dir(),
                "--config", path};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(id);
    return words;
  }

  static void KillEngine() {
    const pid_t engine = node().Engine().pid;
    ASSERT_NE(engine, 0);
    kill(engine, SIGKILL);
    ASSERT_TRUE(WaitGone(engine));
  }

  /// Processes of this test's hooks.
  std::vector<HostProcess> Running() const { return ProcessesWithEnv(Mark()); }

 private:
  std::string Mark() const { return "GANTRY_HOOK=" + folder_; }

  std::string folder_;
  int scripts_ = 0;
  size_t log_begin_ = 0;
};

TEST_F(GvisorHooks, RunInTheirOrderAndKnowTheContainer) {
  const std::string id = Id();
  Json hooks;
  for (const char* kind : {"prestart", "createRuntime", "poststart", "poststop"}) {
    Json hook = Script("echo \"$1 $(cat)\" >&3");
    hook["args"] = {"hook", kind};
    hooks[kind] = {hook};
  }
  const Output output = Ctr(Hooked(id, hooks, "sleep 1000", {{"key", "value"}}, {"-d"}));
  ASSERT_EQ(output.status, 0) << output.Text();
  const pid_t pid = FindTask(id).pid;
  Remove(id);
  std::vector<std::string> told;
  std::istringstream said(Said());
  for (std::string kind; said >> kind;) {
    Json state;
    said >> state;
    EXPECT_EQ(state["id"], id);
    EXPECT_EQ(state["bundle"], node().bundles() + "/" + id);
    EXPECT_EQ(state["annotations"]["key"], "value");
    EXPECT_EQ(state.value("pid", 0), state["status"] == "stopped" ? 0 : pid);
    told.push_back(kind + " " + state["status"].get<std::string>());
  }
  EXPECT_THAT(told, ElementsAre("prestart creating", "createRuntime creating", "poststart running",
                                "poststop stopped"));
}

TEST_F(GvisorHooks, MakeTheNetworkThatTheContainerHas) {
  // As nerdctl's do: the namespace is known by the state's pid alone.
  const Json make = Script(
      "pid=$(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/')\n"
      "net() { nsenter --net=/proc/$pid/ns/net ip \"$@\"; }\n"
      "net link add eth0 type veth peer name other && net addr add 10.9.8.7/24 dev eth0 &&\n"
      "net link set other up && net link set eth0 up && net route add default via 10.9.8.1");
  const Output output = Ctr(Hooked(Id(), {{"createRuntime", {make}}}, "ip addr; ip route"));
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_THAT(output.out, AllOf(HasSubstr("10.9.8.7/24"), HasSubstr("via 10.9.8.1"))) << Logged();
}

TEST_F(GvisorHooks, ThatFailRefuseTheContainer) {
  const std::string id = Id();
  for (const char* kind : {"prestart", "createRuntime"}) {
    const Json bad = Script("echo 'no address left' >&2; exit 3");
    const Output output =
        Ctr(Hooked(id, {{kind, {bad}}, {"poststop", {Script("echo undone >&3")}}}, "true"));
    EXPECT_NE(output.status, 0);
    EXPECT_THAT(output.err, HasSubstr("run hook '" + bad["path"].get<std::string>() + "' (" + kind +
                                      "): it ended with 3: no address left"));
    Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
  }
  EXPECT_EQ(Said(), "undone\nundone\n");
  const Output again = Ctr(Hooked(id, Json::object(), "echo fine"));
  EXPECT_EQ(again.out, "fine\n") << again.Text();
}

TEST_F(GvisorHooks, ThatHangAreKilledAfterTheirTime) {
  const std::string id = Id();
  Json hangs = Script("exec sleep 1000");
  hangs["timeout"] = 1;
  // After poststart the sandbox is still there: its end has not ended them.
  for (const char* kind : {"createRuntime", "poststart"}) {
    const Output output = Ctr(Hooked(id, {{kind, {hangs}}}, "sleep 1000", Json::object(), {"-d"}));
    EXPECT_NE(output.status, 0);
    EXPECT_THAT(output.err, HasSubstr("it was killed after 1000 ms")) << kind;
    EXPECT_TRUE(Running().empty()) << kind << Describe(Running());
    Ctr({"tasks", "rm", "--force", id});
    Ctr({"containers", "rm", id});
  }
}

TEST_F(GvisorHooks, OfStartThatFailStopTheContainer) {
  const std::string id = Id();
  const Json bad = Script("echo oops; exit 5");
  // So ctr leaves what it cannot start.
  const Words detached = {"-d"};
  const Output output =
      Ctr(Hooked(id, {{"poststart", {bad}}, {"poststop", {Script("echo stopped >&3")}}},
                 "sleep 1000", Json::object(), detached));
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("(poststart): it ended with 5: oops"));
  EXPECT_TRUE(WaitForState(id, "STOPPED"));
  Ctr({"tasks", "rm", id});
  Ctr({"containers", "rm", id});
  EXPECT_EQ(Said(), "stopped\n");
}

TEST_F(GvisorHooks, OfDeleteThatFailLetItBe) {
  const Json bad = Script("echo oops; exit 5");
  const Output output = Ctr(Hooked(Id(), {{"poststop", {bad}}}, "echo on; exit 4"));
  EXPECT_EQ(output.status, 4) << output.Text();
  EXPECT_EQ(output.out, "on\n");
  EXPECT_THAT(Logged(), HasSubstr("(poststop): it ended with 5: oops"));
}

TEST_F(GvisorHooks, AreOfFurtherContainersToo) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  const Json annotations = {{"io.kubernetes.cri.container-type", "container"},
                            {"io.kubernetes.cri.sandbox-id", root}};
  const auto run = [&](const Json& create) {
    return Ctr(Hooked(further,
                      {{"createRuntime", {create}},
                       {"poststart", {Script("echo started >&3")}},
                       {"poststop", {Script("echo stopped >&3")}}},
                      "exit 4", annotations));
  };
  EXPECT_EQ(run(Script("echo created >&3")).status, 4);
  EXPECT_EQ(Said(), "created\nstarted\nstopped\n");
  EXPECT_THAT(run(Script("echo oops; exit 1")).err, HasSubstr("it ended with 1: oops"));
  EXPECT_EQ(Said(), "created\nstarted\nstopped\nstopped\n");
  Ctr({"containers", "rm", further});
  EXPECT_EQ(Exec(root, {"echo", "on"}).out, "on\n");
  Remove(root);
}

TEST_F(GvisorHooks, OfTheFilesAreRunByTheGofer) {
  const Json make = Script("echo made >" + rootfs() + "/made");
  const Output output = Ctr(Hooked(Id(), {{"createContainer", {make}}, {"startContainer", {make}}},
                                   "cat made 2>/dev/null"));
  EXPECT_THAT(Logged(), HasSubstr("its hooks of startContainer are not run"));
  if (settings().runsc_release == "20240729") {
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(Logged(), HasSubstr("its hooks of createContainer are not run"));
  } else {
    EXPECT_EQ(output.out, "made\n") << output.Text();
    EXPECT_THAT(Logged(), Not(HasSubstr("its hooks of createContainer are not run")));
    const std::string id = Id("-bad");
    const Json bad = {{"createContainer", {Script("echo oops >&2; exit 3")}},
                      {"poststop", {Script("echo undone >&3")}}};
    EXPECT_THAT(Ctr(Hooked(id, bad, "true")).err,
                AllOf(HasSubstr("its gofer says: "), HasSubstr("stderr: oops")));
    EXPECT_EQ(Said(), "undone\n");
    Ctr({"containers", "rm", id});
  }
}

TEST_F(GvisorHooks, DoNotOutliveACreateWhoseEngineIsKilled) {
  const Json hangs_once = Script(
      "[ -e $0.once ]; again=$?\n>$0.once\necho here >&3\n[ $again = 0 ] || exec sleep 1000");
  Program client(node().CtrWords(
      Hooked(Id(), {{"createRuntime", {hangs_once}}, {"poststop", {Script("echo undone >&3")}}},
             "exit 4")));
  ASSERT_TRUE(WaitForText(SaidPath(), "here\n"));
  KillEngine();
  // The next one removes what there was, and makes it anew.
  EXPECT_EQ(client.Wait(), 4) << client.err();
  EXPECT_EQ(Said(), "here\nundone\nhere\nundone\n");
  EXPECT_TRUE(Running().empty()) << Describe(Running());
}

/// Its sandbox goes on, and so would what runs in it.
TEST_F(GvisorHooks, DoNotOutliveACreateInAPodThatGoesOn) {
  const std::string root = Id("-root");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  const Json annotations = {{"io.kubernetes.cri.container-type", "container"},
                            {"io.kubernetes.cri.sandbox-id", root}};
  const Json hangs_once = Script(
      "[ -e $0.once ]; again=$?\n>$0.once\necho here >&3\n[ $again = 0 ] || exec sleep 1000");
  Program client(node().CtrWords(
      Hooked(Id("-further"), {{"createRuntime", {hangs_once}}}, "exit 4", annotations)));
  ASSERT_TRUE(WaitForText(SaidPath(), "here\n"));
  KillEngine();
  EXPECT_EQ(client.Wait(), 4) << client.err();
  EXPECT_EQ(Said(), "here\nhere\n");
  EXPECT_TRUE(Running().empty()) << Describe(Running());
  Remove(root);
}

TEST_F(GvisorHooks, AfterTheEndAreRunOnceOverARestart) {
  const std::string id = Id();
  const std::string gate = SaidPath() + ".gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  // Neither the one that is done nor the one that runs then is run by the next engine.
  const Json waits = Script("echo begun >&3; cat " + gate + "; echo second >&3");
  Program client(node().CtrWords(Hooked(
      id, {{"poststop", {Script("echo first >&3"), waits, Script("echo third >&3")}}}, "true")));
  ASSERT_TRUE(WaitForText(SaidPath(), "begun\n"));
  KillEngine();
  WriteText(gate, "go\n");
  client.Wait();
  Ctr({"tasks", "delete", id});
  Ctr({"containers", "rm", id});
  EXPECT_TRUE(Eventually([&] { return Said() == "first\nbegun\nsecond\nthird\n"; })) << Said();
}

TEST_F(GvisorHooks, AfterTheEndAreRunByTheNextEngine) {
  const std::string id = Id();
  const Output output = Ctr(Hooked(id, {{"poststop", {Script("echo undone >&3")}}}, "sleep 1000",
                                   Json::object(), {"-d"}));
  ASSERT_EQ(output.status, 0) << output.Text();
  KillEngine();
  Remove(id);
  EXPECT_EQ(Said(), "undone\n");
}

}  // namespace
}  // namespace gantry::e2e
