// SPDX-License-Identifier: Apache-2.0
//
// `cri`: pods and containers from the command line, for the demo.

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/host.h"
#include "tests/integration/cri/client.h"
#include "tests/integration/cri/rounds.h"

namespace gantry::e2e {
namespace {

constexpr const char* kUsage = R"(usage: cri --address unix:///PATH [OPTION...] COMMAND
  wait IMAGE...           until containerd's CRI is ready and knows the images
  runp NAME               runs a pod, prints its id
  create POD NAME CMD...  creates a container in the pod, prints its id
  start ID | stop ID SECONDS | rm ID
  exec ID CMD...          shows the output, ends with the program's exit code
  ps | pods
  stopp ID | rmp ID
  rounds                  for the benchmark, see rounds.h
options: --handler NAME, --logs FOLDER, --cgroup-parent PATH, --image IMAGE
)";

using Words = std::vector<std::string>;

struct Invocation {
  std::map<std::string, std::string> options;
  Words words;
};

int Show(const Status& status) {
  if (!status) {
    std::cerr << "cri: " << status.error().message << "\n";
    return 1;
  }
  return 0;
}

int ShowId(const Result<std::string>& id) {
  if (!id) {
    return Show(std::unexpected(id.error()));
  }
  std::cout << *id << "\n";
  return 0;
}

PodConfig PodOf(const Invocation& invocation, const std::string& name) {
  const auto option = [&](const std::string& key, const std::string& otherwise) {
    const auto found = invocation.options.find(key);
    return found == invocation.options.end() ? otherwise : found->second;
  };
  PodConfig pod;
  pod.name = name;
  pod.log_directory = option("--logs", "");
  pod.cgroup_parent = option("--cgroup-parent", "");
  pod.runtime_handler = option("--handler", "gantry");
  return pod;
}

int Wait(CriClient& client, const Words& images) {
  // CRI tells nobody when it is ready, nor when it has seen an image.
  const auto is_ready = [&] {
    return client.Version() && std::ranges::all_of(images, [&](const std::string& image) {
             return client.HasImage(image).value_or(false);
           });
  };
  if (!Eventually(is_ready)) {
    std::cerr << "cri: containerd's CRI did not get ready\n";
    return 1;
  }
  return 0;
}

int Create(CriClient& client, const Invocation& invocation) {
  const Words& words = invocation.words;
  const auto pod = client.PodStatus(words[1]);
  if (!pod) {
    return Show(std::unexpected(pod.error()));
  }
  ContainerConfig config;
  config.name = words[2];
  config.command.assign(words.begin() + 3, words.end());
  if (const auto image = invocation.options.find("--image"); image != invocation.options.end()) {
    config.image = image->second;
  }
  return ShowId(
      client.Create(words[1], PodOf(invocation, pod->status().metadata().name()), config));
}

int Exec(CriClient& client, const Words& words) {
  const auto result = client.Exec(words[1], Words(words.begin() + 2, words.end()));
  if (!result) {
    return Show(std::unexpected(result.error()));
  }
  std::cout << result->out;
  std::cerr << result->err;
  return result->exit_code;
}

int ListContainers(CriClient& client) {
  const auto containers = client.Containers();
  if (!containers) {
    return Show(std::unexpected(containers.error()));
  }
  for (const cri::Container& container : *containers) {
    std::cout << container.id().substr(0, 12) << "  "
              << cri::ContainerState_Name(container.state()).substr(10) << "  pod "
              << container.pod_sandbox_id().substr(0, 12) << "  " << container.metadata().name()
              << "\n";
  }
  return 0;
}

int ListPods(CriClient& client) {
  const auto pods = client.Pods();
  if (!pods) {
    return Show(std::unexpected(pods.error()));
  }
  for (const cri::PodSandbox& pod : *pods) {
    std::cout << pod.id().substr(0, 12) << "  " << cri::PodSandboxState_Name(pod.state()).substr(8)
              << "  " << pod.metadata().name() << "\n";
  }
  return 0;
}

struct Command {
  size_t least_words;
  std::function<int(CriClient&, const Invocation&)> run;
};

const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> commands{
      {"wait", {1, [](auto& c, auto& i) { return Wait(c, {i.words.begin() + 1, i.words.end()}); }}},
      {"runp", {2, [](auto& c, auto& i) { return ShowId(c.RunPod(PodOf(i, i.words[1]))); }}},
      {"create", {4, [](auto& c, auto& i) { return Create(c, i); }}},
      {"start", {2, [](auto& c, auto& i) { return Show(c.Start(i.words[1])); }}},
      {"stop",
       {3,
        [](auto& c, auto& i) {
          return Show(c.Stop(i.words[1], std::chrono::seconds(std::stol(i.words[2]))));
        }}},
      {"rm", {2, [](auto& c, auto& i) { return Show(c.Remove(i.words[1])); }}},
      {"exec", {3, [](auto& c, auto& i) { return Exec(c, i.words); }}},
      {"ps", {1, [](auto& c, auto&) { return ListContainers(c); }}},
      {"pods", {1, [](auto& c, auto&) { return ListPods(c); }}},
      {"stopp", {2, [](auto& c, auto& i) { return Show(c.StopPod(i.words[1])); }}},
      {"rounds", {1, [](auto& c, auto&) { return ServeRounds(c); }}},
      {"rmp", {2, [](auto& c, auto& i) { return Show(c.RemovePod(i.words[1])); }}},
  };
  return commands;
}

Invocation Parse(const Words& arguments) {
  Invocation invocation;
  size_t at = 0;
  for (; at + 1 < arguments.size() && arguments[at].starts_with("--"); at += 2) {
    invocation.options[arguments[at]] = arguments[at + 1];
  }
  invocation.words.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  return invocation;
}

int Main(const Words& arguments) {
  const Invocation invocation = Parse(arguments);
  const auto address = invocation.options.find("--address");
  const auto command =
      invocation.words.empty() ? Commands().end() : Commands().find(invocation.words.front());
  if (address == invocation.options.end() || command == Commands().end() ||
      invocation.words.size() < command->second.least_words) {
    std::cerr << kUsage;
    return 2;
  }
  std::string path = address->second;
  if (path.starts_with("unix://")) {
    path = path.substr(7);
  }
  CriClient client(path);
  return command->second.run(client, invocation);
}

}  // namespace
}  // namespace gantry::e2e

int main(int argc, char** argv) {
  return gantry::e2e::Main(gantry::e2e::Words(argv + 1, argv + argc));
}
