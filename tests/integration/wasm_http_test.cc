// SPDX-License-Identifier: Apache-2.0
//
// HTTP components in pods, asked by another pod: between the networks of the two there is a cable,
// and each has an address on it.
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <map>

#include <gmock/gmock.h>

#include "tests/harness/wasm_pod.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

// On the cable.
constexpr const char* kServer = "10.61.0.1";
constexpr const char* kClient = "10.61.0.2";

class WasmHttp : public WasmPodTest {
 protected:
  struct OnePod {
    PodConfig config;
    std::string id;
    std::string native;  ///< A container that sleeps.
  };

  void SetUp() override {
    WasmPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    client_ = RunOne("client", {});
  }

  /// A pod with a network of its own.
  OnePod RunOne(const std::string& name, const std::map<std::string, std::string>& annotations) {
    OnePod one{.config = Pod("-" + name), .id = {}, .native = {}};
    one.config.hostname = name;
    one.config.annotations = annotations;
    one.id = RunPod(one.config);
    one.native = RunContainerIn(one.id, one.config, "native", {"sleep", "1000"});
    return one;
  }

  /// The pod that is asked.
  void RunServer(const std::map<std::string, std::string>& annotations = {}) {
    server_ = RunOne("server", annotations);
    const pid_t server = PidOf(server_.native);
    const pid_t client = PidOf(client_.native);
    ASSERT_GT(std::min(server, client), 0);
    ExpectRuns({"ip", "link", "add", "cable", "netns", std::to_string(server), "type", "veth",
                "peer", "name", "cable", "netns", std::to_string(client)});
    PlugIn(server, kServer);
    PlugIn(client, kClient);
  }

  /// Bound, and with that reached, when it is created.
  std::string RunComponent(const ContainerConfig& container) {
    return RunContainerIn(server_.id, server_.config, container);
  }

  static ContainerConfig Component(const std::string& name) {
    return Container(name, Guest({"proxy_component"}));
  }

  /// What the other pod, or one of the server's own containers, gets there.
  ExecResult Ask(const std::string& url) { return AskFrom(client_.native, url); }

  ExecResult AskFrom(const std::string& container, const std::string& url) {
    return Exec(container, {"wget", "-q", "-T", "20", "-O", "-", "http://" + url});
  }

  std::string LogOfServer(const std::string& name) const { return LogOf(server_.config, name); }

  const OnePod& server() const { return server_; }

 private:
  static void ExpectRuns(const Words& words) {
    const Output output = RunProgram(words);
    EXPECT_EQ(output.status, 0) << output.Text();
  }

  static void PlugIn(pid_t pid, const std::string& address) {
    const std::string network = "--net=/proc/" + std::to_string(pid) + "/ns/net";
    ExpectRuns({"nsenter", network, "ip", "address", "add", address + "/24", "dev", "cable"});
    ExpectRuns({"nsenter", network, "ip", "link", "set", "cable", "up"});
  }

  OnePod client_;
  OnePod server_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmHttp, kSandboxers, SandboxerName);

TEST_P(WasmHttp, IsReachedAtThePodsAddress) {
  ASSERT_NO_FATAL_FAILURE(RunServer());
  const std::string id = RunComponent(Component("http"));
  for (int i = 0; i < 2; ++i) {
    const ExecResult answer = Ask("10.61.0.1:8080/");
    EXPECT_EQ(answer.out, "requests: 1\n") << answer.err << "an instance for each";
  }
  EXPECT_EQ(AskFrom(server().native, "127.0.0.1:8080/").out, "requests: 1\n");
  EXPECT_EQ(Exec(id, {"hostname"}).out, "server\n") << "native programs beside it";
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(id).exit_code(), 143);
  EXPECT_THAT(Ask("10.61.0.1:8080/").err, HasSubstr("refused"));
}

/// Kubernetes hands an annotation of a pod to all its containers: one that has an address of its
/// own says so in its environment.
TEST_P(WasmHttp, OfTwoInAPodEachHasItsAddress) {
  ASSERT_NO_FATAL_FAILURE(RunServer({{"io.gantry.wasm/listen", "10.61.0.1:8081"}}));
  const std::string first = RunComponent(Component("first"));
  ContainerConfig other = Component("second");
  other.env = {{"GANTRY_WASM_LISTEN", "0.0.0.0:8082"}};
  RunComponent(other);
  EXPECT_EQ(Ask("10.61.0.1:8081/").out, "requests: 1\n");
  EXPECT_EQ(Ask("10.61.0.1:8082/").out, "requests: 1\n");
  EXPECT_THAT(AskFrom(server().native, "127.0.0.1:8081/").err, HasSubstr("refused"));
  EXPECT_EQ(AskFrom(server().native, "127.0.0.1:8082/").out, "requests: 1\n");

  // Who was asked says what went wrong.
  EXPECT_THAT(Ask("10.61.0.1:8082/trap").err, HasSubstr("500"));
  const std::string log = LogOfServer("second");
  EXPECT_TRUE(WaitForText(log, "a request failed")) << ReadText(log);
  EXPECT_THAT(ReadText(LogOfServer("first")), Not(HasSubstr("a request failed")));

  EXPECT_TRUE(cri().Stop(first, std::chrono::seconds(20)));
  EXPECT_THAT(Ask("10.61.0.1:8081/").err, HasSubstr("refused"));
  EXPECT_EQ(Ask("10.61.0.1:8082/").out, "requests: 1\n");
}

TEST_P(WasmHttp, OfTwoAtOneAddressTheSecondIsRefused) {
  ASSERT_NO_FATAL_FAILURE(RunServer());
  RunComponent(Component("first"));
  const auto second = cri().Create(server().id, server().config, Component("second"));
  ASSERT_TRUE(second) << second.error().message;
  const Status started = cri().Start(*second);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("listen at '0.0.0.0:8080': another one listens"));
  EXPECT_EQ(Ask("10.61.0.1:8080/").out, "requests: 1\n");
}

/// Of a component: 1 for TCP, 2 for UDP, 8 for EPERM.
TEST_P(WasmHttp, OnlyWhoHasANetworkHasSockets) {
  ASSERT_NO_FATAL_FAILURE(RunServer());
  ContainerConfig with = Container("with", Guest({"sockets_component"}));
  ContainerConfig without = Container("without", Guest({"sockets_component"}));
  without.annotations = {{"io.gantry.wasm/network", "none"}};
  EXPECT_EQ(WaitForEnd(RunComponent(with)).exit_code(), 3);
  EXPECT_EQ(WaitForEnd(RunComponent(without)).exit_code(), 8);
}

}  // namespace
}  // namespace gantry::e2e
