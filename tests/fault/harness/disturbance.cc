// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/disturbance.h"

#include <signal.h>

#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

bool Stands(Trouble trouble) {
  return trouble != Trouble::kKill && trouble != Trouble::kNoSpace &&
         trouble != Trouble::kNoDescriptors;
}

/// SIGTERM is on its way to it, or it has gone.
bool IsAskedToEnd(pid_t pid) {
  std::istringstream lines(e2e::ReadText("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ShdPnd:")) {
      return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
    }
  }
  return true;
}

}  // namespace

Disturbance::Disturbance(const e2e::Node& node, const Fault& fault) : node_(node), fault_(fault) {
  Faults::Get().Arm(fault_);
  if (Stands(fault_.trouble)) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      if (Faults::Get().WaitUntilHappened(stop)) {
        Run(stop);
      }
    });
  }
}

bool Disturbance::End() {
  happened_ = Faults::Get().Disarm() || happened_;
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  return happened_;
}

void Disturbance::Run(const std::stop_token& stop) {
  switch (fault_.trouble) {
    case Trouble::kUpgrade:
      UpgradeEngine();
      break;
    case Trouble::kCrashingUpgrade:
      ExpectGivenUp(Script("crashing-engine", "kill -SEGV $$"), "ended before it was ready");
      break;
    case Trouble::kRefusedUpgrade:
      UpgradeRefused();
      break;
    case Trouble::kSilentUpgrade:
      UpgradeToSilent(stop);
      break;
    default: {
      const std::string keeper = node_.settings().gantry_bin + "/gantry-keeper";
      const e2e::Output done = Upgrade({"--keeper", keeper});
      EXPECT_EQ(done.status, 0) << done.Text();
      break;
    }
  }
  Faults::Get().Release();
}

/// It stands until it has been asked to end. (One that does not end then is killed after
/// 2 s; as long as that, containerd waits for the state of a container.)
void Disturbance::UpgradeEngine() {
  const pid_t old = node_.Engine().pid;
  e2e::Program upgrade(UpgradeWords({}));
  EXPECT_TRUE(e2e::Eventually([&] { return IsAskedToEnd(old); }));
  Faults::Get().Release();
  EXPECT_EQ(upgrade.Wait(), 0) << upgrade.err();
  EXPECT_TRUE(e2e::WaitGone(old)) << "the old engine is still there";
}

void Disturbance::UpgradeRefused() {
  const std::string path = node_.settings().root + "/gantry.yaml";
  const std::string good = e2e::ReadText(path);
  e2e::WriteText(path, "version: 1\nhandler: {}\n");
  ExpectGivenUp("", "refuses");
  e2e::WriteText(path, good);
}

/// It is silent all the time that the operation takes, and then ended.
void Disturbance::UpgradeToSilent(const std::stop_token& stop) {
  const std::string program = Script("silent-engine", "exec sleep 1234");
  e2e::Program upgrade(UpgradeWords({"--engine", program}));
  const pid_t keeper = node_.Keeper().pid;
  e2e::HostProcess silent;
  EXPECT_TRUE(e2e::Eventually([&] {
    const auto found = e2e::Processes([&](const e2e::HostProcess& process) {
      return process.parent == keeper && process.command == "sleep 1234 ";
    });
    silent = found.empty() ? e2e::HostProcess() : found.front();
    return !found.empty();
  })) << "the new engine was not started";
  Faults::Get().Release();
  while (!stop.stop_requested() && !e2e::WaitGone(silent.pid, std::chrono::milliseconds(10))) {
  }
  if (silent.pid > 0) {
    kill(silent.pid, SIGKILL);
  }
  EXPECT_NE(upgrade.Wait(), 0) << upgrade.out();
}

void Disturbance::ExpectGivenUp(const std::string& program, const std::string& why) const {
  const pid_t old = node_.Engine().pid;
  const e2e::Output done = program.empty() ? Upgrade({}) : Upgrade({"--engine", program});
  EXPECT_NE(done.status, 0);
  EXPECT_NE(done.err.find(why), std::string::npos) << done.Text();
  EXPECT_EQ(node_.Engine().pid, old);
}

std::vector<std::string> Disturbance::UpgradeWords(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {node_.settings().gantry_bin + "/gantryctl", "--address",
                                  node_.settings().run_dir + "/gantry.sock", "upgrade"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

e2e::Output Disturbance::Upgrade(const std::vector<std::string>& words) const {
  return e2e::RunProgram(UpgradeWords(words));
}

std::string Disturbance::Script(const std::string& name, const std::string& text) const {
  std::string path = node_.settings().root + "/" + name;
  if (!std::filesystem::exists(path)) {
    e2e::WriteText(path + ".new", "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path + ".new", std::filesystem::perms(0755));
    std::filesystem::rename(path + ".new", path);
  }
  return path;
}

}  // namespace gantry::fault
