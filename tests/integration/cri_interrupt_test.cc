// SPDX-License-Identifier: Apache-2.0
//
// Pods while something dies: the engine or containerd in the middle of each
// operation, each process of gantry's.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>

#include "tests/harness/cri_pod.h"
#include "tests/harness/folder_watch.h"

namespace gantry::e2e {
namespace {

// Killed between the shim's `delete` and its own removal of the pod, or before it has
// read what `start` has answered, it says "not found" to each StopPodSandbox.
constexpr const char* kNeverRemoved =
    "containerd 1.7 never removes a pod whose shim it does not know";

class CriInterrupt : public CriPodTest {
 protected:
  using Operation = std::function<Status()>;

  /// What became of it while the engine was killed, again and again.
  Status WithoutEngine(const Operation& operation) {
    constexpr int kKills = 3;
    auto done = std::async(std::launch::async, operation);
    for (int i = 0; i < kKills && !IsReady(done); ++i) {
      const pid_t engine = node().Engine().pid;
      if (engine > 0) {
        kill(engine, SIGKILL);
        EXPECT_TRUE(WaitGone(engine));
        ++kills_;
      }
      EXPECT_TRUE(Eventually([&] { return IsReady(done) || node().Engine().pid > 0; }));
    }
    return done.get();
  }

  /// Kills containerd as soon as bundles have come, gone or changed so often, and starts
  /// it again.
  void WithoutContainerd(const Operation& operation, int changes = 1) {
    FolderWatch bundles;
    std::vector<std::string> folders;
    for (const char* plugin : {"runtime.v2.task", "sandbox.controller.v1.shim"}) {
      folders.push_back(node().state() + "/io.containerd." + plugin + "/k8s.io");
      std::filesystem::create_directories(folders.back());
      bundles.Add(folders.back());
    }
    auto done = std::async(std::launch::async, operation);
    Eventually([&] {
      changes -= bundles.Changes();
      for (const std::string& folder : folders) {
        for (const std::string& bundle : ListFolder(folder)) {
          bundles.Add((folder + "/").append(bundle));  // Again: the same watch.
        }
      }
      return changes <= 0 || IsReady(done);
    });
    node().KillContainerd();
    IgnoreError(done.get(), "whoever is to tell has been killed");
    ASSERT_EQ(node().StartContainerd(), "");
    ASSERT_NO_FATAL_FAILURE(Connect());
  }

  static bool IsReady(const std::future<Status>& done) {
    return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  Operation Running(const PodConfig& config, std::string& id) {
    return [&] { return Take(cri().RunPod(config), id); };
  }

  Operation Creating(const std::string& pod, const PodConfig& config, std::string& id) {
    return [&] {
      ContainerConfig container;
      container.name = "one";
      container.command = {"sleep", "1000"};
      return Take(cri().Create(pod, config, container), id);
    };
  }

  /// As the kubelet does: with what is empty in it. containerd may have removed the
  /// bundle before `delete` could read there where the cgroup is.
  static void RemovePodCgroup(const PodConfig& config) {
    for (const std::string& folder : CgroupFolders(config.cgroup_parent)) {
      for (const std::string& name : ListFolder(folder)) {
        rmdir((folder + "/" + name).c_str());
      }
    }
  }

  int kills_ = 0;

 private:
  static Status Take(Result<std::string> got, std::string& into) {
    GANTRY_TRY(into, std::move(got));
    return {};
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriInterrupt, kSandboxers, SandboxerName);

TEST_P(CriInterrupt, TheEngineDiesInEachOperation) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime has no engine";
  }
  const PodConfig config = Pod();
  std::string pod;
  std::string id;
  const std::vector<std::pair<const char*, Operation>> life = {
      {"RunPodSandbox", Running(config, pod)},
      {"CreateContainer", Creating(pod, config, id)},
      {"StartContainer", [&] { return cri().Start(id); }},
      {"UpdateContainerResources", [&] { return cri().UpdateMemory(id, 64 << 20); }},
      {"StopContainer", [&] { return cri().Stop(id, std::chrono::seconds(0)); }},
      {"RemoveContainer", [&] { return cri().Remove(id); }},
      {"StopPodSandbox", [&] { return cri().StopPod(pod); }},
      {"RemovePodSandbox", [&] { return cri().RemovePod(pod); }},
  };
  for (const auto& [name, operation] : life) {
    const Status done = WithoutEngine(operation);
    ASSERT_TRUE(done) << name << ": " << done.error().message;
    if (name == std::string_view("StartContainer")) {
      EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
      EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
    }
    if (name == std::string_view("StopContainer")) {
      EXPECT_EQ(StatusOf(id).exit_code(), 137);
    }
  }
  EXPECT_GE(kills_, 4) << "they were over before the engine could be killed";
}

TEST_P(CriInterrupt, ContainerdDiesWhileAPodIsMade) {
  if (settings().release1() && !is_podsandbox()) {
    GTEST_SKIP() << kNeverRemoved;
  }
  const PodConfig config = Pod();
  std::string pod;
  WithoutContainerd(Running(config, pod));
  // The kubelet makes another one of the same name, after it has removed the first.
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  EXPECT_NE(RunPod(config), "");
}

TEST_P(CriInterrupt, ContainerdDiesAtEachStepOfAPod) {
  if (settings().release1() && !is_podsandbox()) {
    GTEST_SKIP() << kNeverRemoved;
  }
  constexpr int kLastStep = 26;
  constexpr int kStride = 4;
  const PodConfig config = Pod();
  for (int step = 2; step <= kLastStep; step += kStride) {
    SCOPED_TRACE("after change " + std::to_string(step));
    std::string pod;
    WithoutContainerd(Running(config, pod), step);
    ASSERT_NO_FATAL_FAILURE(RemovePods());
    ASSERT_NO_FATAL_FAILURE(ExpectNoBundles());
  }
}

TEST_P(CriInterrupt, ContainerdDiesWhileAContainerIsMade) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  std::string id;
  WithoutContainerd(Creating(pod, config, id));
  ASSERT_NO_FATAL_FAILURE(RemoveContainers());
  EXPECT_EQ(StatusOf(RunContainerIn(pod, config, "one", {"sleep", "1000"})).state(),
            cri::CONTAINER_RUNNING);
}

TEST_P(CriInterrupt, ContainerdDiesWhileAContainerStarts) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  std::string id;
  ASSERT_TRUE(Creating(pod, config, id)());
  WithoutContainerd([&] { return cri().Start(id); });
  ASSERT_NO_FATAL_FAILURE(RemoveContainers());
  EXPECT_EQ(StatusOf(RunContainerIn(pod, config, "one", {"sleep", "1000"})).state(),
            cri::CONTAINER_RUNNING);
}

TEST_P(CriInterrupt, ContainerdDiesWhileAContainerEnds) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  const pid_t pid = PidOf(id);
  WithoutContainerd([&] { return cri().Stop(id, std::chrono::seconds(0)); });
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0)));
  EXPECT_TRUE(WaitGone(pid));
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_EXITED);
}

TEST_P(CriInterrupt, ContainerdDiesWhileAPodEnds) {
  if (settings().release1() && !is_podsandbox()) {
    GTEST_SKIP() << kNeverRemoved;
  }
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const pid_t pid = PidOf(RunContainerIn(pod, config, "one", {"sleep", "1000"}));
  WithoutContainerd([&] { return cri().StopPod(pod); });
  WithoutContainerd([&]() -> Status {
    GANTRY_CHECK_OK(cri().StopPod(pod));
    return cri().RemovePod(pod);
  });
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  EXPECT_TRUE(WaitGone(pid));
}

TEST_P(CriInterrupt, WhateverIsKilledThePodCanBeRemoved) {
  if (settings().stock()) {
    GTEST_SKIP() << "it has none of these processes";
  }

  struct Victims {
    const char* name;
    bool engine;
    bool keeper;
    bool holder;
    cri::NamespaceMode pid = cri::POD;
  };

  constexpr Victims kVictims[] = {{"engine", true, false, false},
                                  {"keeper", false, true, false},
                                  {"holder", false, false, true},
                                  {"holder of others", false, false, true, cri::CONTAINER},
                                  {"all", true, true, true}};
  for (const Victims& victims : kVictims) {
    SCOPED_TRACE(victims.name);
    const PodConfig config = Pod("-" + std::to_string(&victims - kVictims));
    const std::string pod = RunPod(config);
    ContainerConfig one;
    one.name = "one";
    one.command = {"sleep", "1000"};
    one.pid = victims.pid;
    const pid_t pid = PidOf(RunContainerIn(pod, config, one));
    std::vector<pid_t> killed;
    if (victims.keeper) {
      // First: it would start another engine.
      killed.push_back(node().Keeper().pid);
    }
    if (victims.engine) {
      killed.push_back(node().Engine().pid);
    }
    if (victims.holder) {
      for (const HostProcess& process : ProcessesInCgroup(config.cgroup_parent.substr(1))) {
        if (process.name == "gantry-pause" || process.name == "pause") {
          killed.push_back(process.pid);
        }
      }
    }
    for (const pid_t victim : killed) {
      ASSERT_GT(victim, 0);
      kill(victim, SIGKILL);
    }
    for (const pid_t victim : killed) {
      EXPECT_TRUE(WaitGone(victim));
    }
    ASSERT_NO_FATAL_FAILURE(AwaitController());
    ASSERT_NO_FATAL_FAILURE(RemovePods());
    EXPECT_TRUE(WaitGone(pid));
    EXPECT_TRUE(
        Eventually([&] { return ProcessesInCgroup(config.cgroup_parent.substr(1)).empty(); }));
    RemovePodCgroup(config);
  }
}

TEST_P(CriInterrupt, RunsAHundredPodsAtOnce) {
  constexpr int kPods = 100;
  constexpr int kClients = 10;
  std::vector<PodConfig> configs;
  for (int i = 0; i < kPods; ++i) {
    configs.push_back(Pod("-" + std::to_string(i)));
  }
  std::vector<std::future<Status>> clients;
  for (size_t client = 0; client < kClients; ++client) {
    clients.push_back(std::async(std::launch::async, [&, client]() -> Status {
      for (size_t i = client; i < kPods; i += kClients) {
        GANTRY_TRY(const std::string pod, cri().RunPod(configs[i]));
        std::string id;
        GANTRY_CHECK_OK(Creating(pod, configs[i], id)());
        GANTRY_CHECK_OK(cri().Start(id));
      }
      return {};
    }));
  }
  for (std::future<Status>& client : clients) {
    const Status done = client.get();
    EXPECT_TRUE(done) << done.error().message;
  }
  const auto containers = cri().Containers();
  ASSERT_TRUE(containers) << containers.error().message;
  EXPECT_EQ(std::ranges::count(*containers, cri::CONTAINER_RUNNING, &cri::Container::state), kPods);
}

}  // namespace
}  // namespace gantry::e2e
