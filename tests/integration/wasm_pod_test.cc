// SPDX-License-Identifier: Apache-2.0
//
// Guests in pods beside native containers, with a pause container and without one: what a kubelet
// asks of them, and how they end.
#include "tests/harness/wasm_pod.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

/// More than a guest takes to be made.
constexpr uint64_t kOfSpinningNs = 300'000'000;

class WasmPod : public OneWasmPodTest {
 protected:
  std::string RunGuest(const std::string& name, const Words& words) {
    return Run(Container(name, Guest(words)));
  }

  /// Has said the line, executes both kinds of programs, and is measured.
  void ExpectWhole(const std::string& id, const std::string& name, const std::string& line) {
    SCOPED_TRACE(name);
    const std::string log = LogOf(name);
    EXPECT_TRUE(WaitForText(log, "stdout F " + line + "\n")) << ReadText(log);
    const ExecResult native = Exec(id, {"sh", "-c", "echo out; echo err >&2; exit 3"});
    EXPECT_EQ(native.exit_code, 3);
    EXPECT_EQ(native.out + native.err, "out\nerr\n");
    const ExecResult guest = Exec(id, Guest({"tool", "streams", "here"}));
    EXPECT_EQ(guest.exit_code, 0);
    EXPECT_EQ(guest.out + guest.err, "out here\nerr here\n");
    EXPECT_EQ(Exec(id, Guest({"tool", "exit", "200"})).exit_code, 200);
    const auto stats = cri().Stats(id);
    ASSERT_TRUE(stats) << stats.error().message;
    EXPECT_GT(stats->cpu().usage_core_nano_seconds().value(), 0U);
    EXPECT_GT(stats->memory().working_set_bytes().value(), 0U);
  }

  /// For containers: a volume that they share.
  cri::Mount Volume() const {
    const std::string folder = config().log_directory + "/volume";
    std::filesystem::create_directories(folder);
    cri::Mount mount;
    mount.set_container_path("/data");
    mount.set_host_path(folder);
    return mount;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmPod, kSandboxers, SandboxerName);

/// As a kubelet starts them: the init container to its end, then the others.
TEST_P(WasmPod, HasANativeInitContainerANativeSidecarAndAModule) {
  ContainerConfig init = Container("init", {"sh", "-c",
                                            "echo prepares; until [ -e /data/go ]; do sleep 0.05; "
                                            "done; echo prepared >/data/note"});
  ContainerConfig sidecar = Container("sidecar", {"sh", "-c", "echo serves; exec sleep 1000"});
  ContainerConfig module = Container("module", Guest({"tool", "sleep", "1000000"}));
  for (ContainerConfig* one : {&init, &sidecar, &module}) {
    one->mounts.push_back(Volume());
  }
  const std::string first = Run(init);
  ExpectWhole(first, "init", "prepares");
  EXPECT_EQ(Exec(first, {"touch", "/data/go"}).exit_code, 0);
  EXPECT_EQ(WaitForEnd(first).exit_code(), 0);
  const std::string beside = Run(sidecar);
  const std::string guest = Run(module);
  ExpectWhole(beside, "sidecar", "serves");
  ExpectWhole(guest, "module", "sleeps");
  EXPECT_EQ(Exec(guest, Guest({"tool", "read", "/data/note"})).out, "prepared\n");
  EXPECT_THAT(Exec(guest, {"ps"}).out, HasSubstr("1 root")) << "the guest is the first there";
  EXPECT_TRUE(cri().Stop(guest, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(guest).exit_code(), 143);
  EXPECT_EQ(StatusOf(beside).state(), cri::CONTAINER_RUNNING);
}

/// In the cgroup that the kubelet asked for, whose numbers containerd tells.
TEST_P(WasmPod, MeasuresAGuestThatSpins) {
  const std::string id = RunGuest("one", {"tool", "spin"});
  const pid_t guest = PidOf(id);
  EXPECT_TRUE(std::ranges::contains(ProcessesInCgroup(config().cgroup_parent + "/" + id), guest,
                                    &HostProcess::pid));
  uint64_t spent = 0;
  EXPECT_TRUE(Eventually([&] {
    const auto stats = cri().Stats(id);
    spent = stats ? stats->cpu().usage_core_nano_seconds().value() : 0;
    return spent > kOfSpinningNs;
  })) << spent
      << " ns";
}

TEST_P(WasmPod, StopsAGuestThatSpinsWithTheFirstSignal) {
  const std::string id = RunGuest("one", {"tool", "spin"});
  ASSERT_TRUE(WaitForText(LogOf("one"), "spins"));
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(id).exit_code(), 143) << "137 is that of the end of its grace";
}

TEST_P(WasmPod, TellsHowAGuestEnded) {
  const cri::ContainerStatus code = WaitForEnd(RunGuest("code", {"tool", "exit", "42"}));
  EXPECT_EQ(code.exit_code(), 42);
  EXPECT_EQ(code.reason(), "Error");
  EXPECT_EQ(WaitForEnd(RunGuest("trap", {"tool", "trap"})).exit_code(), 134);
  const std::string log = LogOf("trap");
  EXPECT_TRUE(WaitForText(log, "unreachable")) << ReadText(log);
  EXPECT_THAT(ReadText(log), HasSubstr("stderr F ")) << "where it was";
}

TEST_P(WasmPod, HasTerminals) {
  ContainerConfig container = Container("one", Guest({"tool", "cat"}));
  container.input = true;
  container.terminal = true;
  const std::string id = Run(container);
  auto exec = OpenExec(id, Guest({"tool", "terminals"}), true);
  ASSERT_TRUE(exec);
  exec->Resize(33, 101);
  EXPECT_EQ(exec->Wait(), 0) << exec->status();
  EXPECT_THAT(exec->out(), HasSubstr("111"));
  auto client = OpenAttach(id, true);
  ASSERT_TRUE(client);
  // The terminal's echo, and the guest's. Again until they come: containerd passes on what a client
  // types before it has added the client to those that see the output.
  constexpr std::chrono::seconds kOneTry{1};
  EXPECT_TRUE(Eventually([&] {
    client->Write("word\n");
    return client->ReadUntil("word\r\nword\r\n", kOneTry);
  })) << client->out();
  client->Write("\x04");
  EXPECT_EQ(WaitForEnd(id).exit_code(), 0);
  EXPECT_EQ(client->Wait(), 0) << client->status();
}

TEST_P(WasmPod, GivesAnExecItsInput) {
  const std::string id = RunGuest("one", {"tool", "sleep", "1000000"});
  auto exec = OpenExec(id, Guest({"tool", "cat"}));
  ASSERT_TRUE(exec);
  for (const std::string line : {"first\n", "second\n"}) {
    exec->Write(line);
    EXPECT_TRUE(exec->ReadUntil(line)) << exec->status();
  }
}

TEST_P(WasmPod, OutlivesTheEngineAndContainerd) {
  const std::string id = RunGuest("one", {"tool", "sleep", "1000000"});
  const std::string native = Run(Container("two", {"sleep", "1000"}));
  const pid_t guest = PidOf(id);
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_EQ(Exec(id, Guest({"tool", "exit", "7"})).exit_code, 7);
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(PidOf(id), guest);
  EXPECT_EQ(Exec(id, Guest({"tool", "exit", "8"})).exit_code, 8);
  EXPECT_EQ(Exec(native, {"sh", "-c", "exit 9"}).exit_code, 9);
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(20)));
  EXPECT_EQ(StatusOf(id).exit_code(), 143);
}

/// containerd executes the shim of `runtime_path`, and has sockets and folders of its own.
class WasmPodPath : public WasmPod {
 protected:
  std::string handler() const override { return "gantry-path"; }
};

// With `sandboxer = "shim"` containerd does not look at the path.
INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmPodPath, testing::Values("podsandbox"), SandboxerName);

TEST_P(WasmPodPath, RunsAGuest) {
  const std::string id = RunGuest("one", {"tool", "sleep", "1000000"});
  ExpectWhole(id, "one", "sleeps");
}

}  // namespace
}  // namespace gantry::e2e
