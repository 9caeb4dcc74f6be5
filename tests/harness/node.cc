// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/node.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tests/harness/vmm_node.h"

namespace gantry::e2e {
namespace {

// ctr 2.3 warns of cgroup v1 hosts on every run.
std::string WithoutDeprecations(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("DEPRECATION:") == std::string::npos) {
      kept += line + "\n";
    }
  }
  return kept;
}

}  // namespace

Node::Node(Settings settings) : settings_(std::move(settings)) {}

void Node::WriteConfiguration() const {
  for (const char* name : {"", "/run", "/fifo", "/state", "/root", "/cni/bin", "/bin"}) {
    std::filesystem::create_directories(settings_.root + name);
  }
  WriteText(settings_.root + "/containerd.toml", ContainerdConfiguration(settings_, address()));
  WriteText(settings_.root + "/gantry.yaml", GantryConfiguration(settings_));
  WriteText(settings_.root + "/cni/10-test.conflist", NetworkConfiguration());
  if (settings_.vmm()) {
    WriteVmmFiles(settings_);
  }
  // The name by which the shim is called chooses the handler.
  std::vector<std::string> handlers = FurtherVmmHandlers();
  handlers.emplace_back("remote");
  for (const std::string& handler : handlers) {
    std::filesystem::create_symlink(
        settings_.gantry_bin + "/containerd-shim-gantry-v1",
        settings_.root + "/bin/containerd-shim-gantry-" + handler + "-v1");
  }
  for (const char* plugin : {"/cni/bin/test", "/cni/bin/loopback"}) {
    WriteText(settings_.root + plugin, NetworkPlugin(settings_));
    std::filesystem::permissions(settings_.root + plugin, std::filesystem::perms(0755));
  }
}

std::string Node::SetUp() {
  WriteConfiguration();
  if (std::string failure = StartContainerd(); !failure.empty()) {
    return failure;
  }
  const std::vector<std::pair<std::string, std::string>> imports{
      {settings_.ns, "busybox"}, {"k8s.io", "busybox"}, {"k8s.io", "pause"}};
  for (const auto& [ns, image] : imports) {
    const Output imported =
        RunProgram({settings_.containerd_bin + "/ctr", "-a", address(), "-n", ns, "images",
                    "import", settings_.images + "/" + image + ".tar"});
    if (imported.status != 0) {
      return "import of " + image + ".tar: " + imported.Text();
    }
  }
  return "";
}

std::string Node::StartContainerd() {
  const size_t begin = ReadText(log_path()).size();
  Program::Options options;
  options.log_path = log_path();
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  options.env = {
      {"PATH", settings_.root + "/bin:" + settings_.gantry_bin + ":" +
                   (path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin")},
      {"GANTRY_RUN_DIR", settings_.run_dir},
      {"GANTRY_CONFIG", settings_.root + "/gantry.yaml"},
      {"TMPDIR", settings_.root},
  };
  options.env.insert(settings_.env.begin(), settings_.env.end());
  options.env["ENABLE_CRI_SANDBOXES"] = settings_.newer_cri ? "1" : "";
  containerd_ = std::make_unique<Program>(
      std::vector<std::string>{settings_.containerd_bin + "/containerd", "--config",
                               settings_.root + "/containerd.toml"},
      options);
  if (!WaitForText(log_path(), "containerd successfully booted", begin)) {
    return "containerd did not start: " + ReadText(log_path());
  }
  return "";
}

void Node::KillContainerd() {
  if (containerd_ != nullptr) {
    containerd_->Kill(SIGKILL);
    containerd_->Wait();
    containerd_.reset();
  }
}

std::string Node::RestartContainerd() {
  KillContainerd();
  return StartContainerd();
}

std::vector<std::string> Node::CtrWords(const std::vector<std::string>& words) const {
  std::vector<std::string> all{settings_.containerd_bin + "/ctr", "-a", address(), "-n",
                               settings_.ns};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Output Node::Ctr(const std::vector<std::string>& words, std::optional<std::string_view> input,
                 Duration deadline) const {
  Output output = RunProgram(CtrWords(words), input, deadline);
  output.err = WithoutDeprecations(output.err);
  return output;
}

HostProcess Node::Keeper() const {
  auto found = ProcessesWithEnv("GANTRY_RUN_DIR=" + settings_.run_dir);
  std::erase_if(found, [](const HostProcess& process) { return process.name != "gantry-keeper"; });
  // What it forks has its name until it executes something.
  for (const HostProcess& process : found) {
    if (!std::ranges::contains(found, process.parent, &HostProcess::pid)) {
      return process;
    }
  }
  return {};
}

HostProcess Node::Engine() const {
  const HostProcess keeper = Keeper();
  if (keeper.pid == 0) {
    return {};
  }
  const auto found = Processes([&](const HostProcess& process) {
    return process.parent == keeper.pid && process.name == "gantryd";
  });
  return found.empty() ? HostProcess{} : found.front();
}

}  // namespace gantry::e2e
