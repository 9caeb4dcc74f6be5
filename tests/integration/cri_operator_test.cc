// SPDX-License-Identifier: Apache-2.0
//
// gantryctl of a node with pods, by ttrpc and by gRPC: what it lists, what has happened, what is
// used, and what was logged.
#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CriOperator : public CriPodTest {
 protected:
  static Words Command(const Words& words) {
    Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  /// What it prints; fails the test when it fails.
  static std::string Ctl(const Words& words) {
    const Output output = RunProgram(Command(words));
    EXPECT_EQ(output.status, 0) << output.Text();
    return output.out;
  }

  static Words ByGrpc(Words words) {
    words.insert(words.end(), {"--address", "unix://" + settings().grpc_address()});
    return words;
  }

  /// Objects, one on each line.
  static std::vector<Json> Lines(const std::string& text) {
    std::vector<Json> all;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      all.push_back(Json::parse(text.substr(at, end - at), nullptr, false));
      at = end + 1;
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriOperator, testing::Values("controller"), SandboxerName);

TEST_P(CriOperator, IsToldTheSameByBothProtocols) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  const Words inspect = {"inspect", id, "-n", "k8s.io", "--json"};
  const Json ours = Json::parse(Ctl(inspect), nullptr, false);
  const Json theirs = Json::parse(Ctl(ByGrpc(inspect)), nullptr, false);
  EXPECT_EQ(ours["instance"]["pid"], theirs["instance"]["pid"]);
  EXPECT_EQ(ours["bundle"], theirs["bundle"]);
  EXPECT_THAT(Ctl(ByGrpc({"ps"})), AllOf(HasSubstr(pod), HasSubstr(id)));
  const Json status = Json::parse(Ctl(ByGrpc({"status", "--json"})), nullptr, false);
  EXPECT_EQ(status["engine_pid"], node().Engine().pid);
  EXPECT_EQ(status["keeper_pid"], node().Keeper().pid);
  const Output none = RunProgram(Command(ByGrpc({"inspect", "none"})));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("no such container or sandbox"));
}

TEST_P(CriOperator, RestartsTheEngineByGrpc) {
  const pid_t before = node().Engine().pid;
  const Json done = Json::parse(Ctl(ByGrpc({"restart", "--json"})), nullptr, false);
  EXPECT_NE(done["engine_pid"], before);
  EXPECT_EQ(done["engine_pid"], node().Engine().pid);
}

TEST_P(CriOperator, IsToldOfAPodsLife) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sh", "-c", "exit 3"});
  WaitForEnd(id);
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  std::map<std::string, Json> by_type;
  for (const Json& event : Lines(Ctl(ByGrpc({"events", pod, "--json"})))) {
    by_type[event["type"]] = event;
  }
  for (const char* type :
       {"sandbox.created", "sandbox.started", "sandbox.exited", "sandbox.deleted",
        "container.created", "container.started", "container.exited", "container.deleted"}) {
    EXPECT_TRUE(by_type.contains(type)) << type;
  }
  EXPECT_EQ(by_type["container.exited"]["id"], id);
  EXPECT_EQ(by_type["container.exited"]["exit_status"], 3);
  EXPECT_EQ(by_type["container.exited"]["sandbox_id"], pod);
  EXPECT_THAT(Ctl({"logs", pod}), AllOf(HasSubstr("sandbox created"), HasSubstr("engine ")));
}

TEST_P(CriOperator, FollowsEventsOverEndsOfEngineAndServer) {
  Program::Options options;
  Program follower(Command(ByGrpc({"events", "--follow"})), options);
  ASSERT_TRUE(follower.ReadLine(kDeadline)) << "what has been";
  kill(node().Engine().pid, SIGKILL);
  for (const HostProcess& process : ProcessesWithEnv("GANTRY_RUN_DIR=" + settings().run_dir)) {
    if (process.name == "gantry-grpc") {
      kill(process.pid, SIGKILL);
    }
  }
  const Output output = RunContainer({"--rm"}, "followed", {"true"});
  ASSERT_EQ(output.status, 0) << output.Text();
  bool seen = false;
  while (!seen) {
    const auto line = follower.ReadLine(kDeadline);
    ASSERT_TRUE(line) << "the container's end never came";
    seen = line->contains("container.deleted") && line->contains("followed");
  }
}

TEST_P(CriOperator, SeesWhatAPodUses) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  RunContainerIn(pod, config, "one", {"sh", "-c", "while :; do :; done"});
  const std::string text = Ctl({"top", "--once", "--interval", "0.5", "--json"});
  const Json all = Json::parse(text, nullptr, false);
  ASSERT_TRUE(all.is_array()) << text;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Json& use) { return use["id"] == pod; });
  ASSERT_NE(found, all.end()) << text;
  EXPECT_EQ((*found)["containers"], 1);
  EXPECT_GT((*found)["cpu_percent"], 0);
  EXPECT_GT((*found)["memory_bytes"], 0);
  EXPECT_GT((*found)["pids"], 0);
  EXPECT_THAT(Ctl({"top", "--count", "2", "--interval", "0.1"}), HasSubstr("CPU-TIME"));
}

}  // namespace
}  // namespace gantry::e2e
