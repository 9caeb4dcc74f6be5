// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/cri/rounds.h"

#include <chrono>
#include <future>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/host.h"

namespace gantry::e2e {
namespace {

using Clock = std::chrono::steady_clock;

struct Line {
  std::string word;
  std::string handler;
  std::string name;
  int count = 1;
  std::string image = ContainerConfig().image;
  std::vector<std::string> command{"sleep", "100000"};
};

Line Parse(const std::string& text) {
  std::istringstream words(text);
  Line line;
  words >> line.word >> line.handler >> line.name >> line.count;
  if (words >> line.image) {
    line.command.assign(std::istream_iterator<std::string>(words), {});
  }
  return line;
}

/// On the node's network: no CNI plugin in what is measured.
PodConfig ConfigOf(const Line& line, int number) {
  PodConfig config;
  config.name = line.name + "-" + std::to_string(number);
  config.runtime_handler = line.handler;
  if (line.command.front().ends_with(".wasm")) {
    // Without it crun would execute the module as a program.
    config.annotations = {{"run.oci.handler", "wasm-smart"}};
  }
  return config;
}

class Rounds {
 public:
  explicit Rounds(CriClient& client) : client_(client) {}

  Result<double> Do(const Line& line) {
    if (line.word == "sandbox") {
      return Timed([&]() -> Status {
        GANTRY_TRY([[maybe_unused]] const std::string pod, client_.RunPod(ConfigOf(line, 0)));
        return {};
      });
    }
    if (line.word == "start") {
      return Timed([&] { return RunOne(line, 0); });
    }
    if (line.word == "batch") {
      return Timed([&] { return RunAtOnce(line); });
    }
    if (line.word == "keep") {
      return Keep(line);
    }
    if (line.word == "more") {
      return More(line);
    }
    GANTRY_CHECK_OK(Clear());
    return 0;
  }

 private:
  /// What it takes; then everything is removed.
  template <class F>
  Result<double> Timed(F&& work) {
    const auto begin = Clock::now();
    GANTRY_CHECK_OK(work());
    const double took = Since(begin);
    GANTRY_CHECK_OK(Clear());
    return took;
  }

  static double Since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }

  /// What a line asks for. Returns the pod.
  Result<std::string> RunPod(const Line& line, const PodConfig& config) {
    GANTRY_TRY(std::string pod, client_.RunPod(config));
    ContainerConfig container;
    container.name = "idle";
    container.image = line.image;
    container.command = line.command;
    GANTRY_CHECK_OK(client_.Run(pod, config, container));
    return pod;
  }

  Status RunOne(const Line& line, int number) {
    kept_config_ = ConfigOf(line, number);
    GANTRY_TRY(kept_, RunPod(line, kept_config_));
    return {};
  }

  Status RunAtOnce(const Line& line) {
    std::vector<std::future<Status>> pods;
    for (int i = 0; i < line.count; ++i) {
      pods.push_back(std::async(std::launch::async, [&, i]() -> Status {
        GANTRY_CHECK_OK(RunPod(line, ConfigOf(line, i)));
        return {};
      }));
    }
    Status all;
    for (std::future<Status>& pod : pods) {
      if (Status one = pod.get(); !one) {
        all = std::move(one);
      }
    }
    return all;
  }

  Result<double> Keep(const Line& line) {
    const auto begin = Clock::now();
    for (int i = 0; i < line.count; ++i) {
      GANTRY_CHECK_OK(RunOne(line, i));
    }
    return Since(begin);
  }

  Result<double> More(const Line& line) {
    const auto begin = Clock::now();
    ContainerConfig container;
    container.name = line.handler;
    container.command = {"true"};
    GANTRY_TRY(const std::string id, client_.Run(kept_, kept_config_, container));
    if (!Eventually([&] {
          const auto status = client_.ContainerStatus(id);
          return status && status->status().state() == cri::CONTAINER_EXITED;
        })) {
      return Fail(Code::kDeadlineExceeded, "wait for container '{}': it has not ended", id);
    }
    GANTRY_CHECK_OK(client_.Remove(id));
    return Since(begin);
  }

  Status Clear() {
    GANTRY_TRY(const std::vector<cri::PodSandbox> pods, client_.Pods());
    for (const cri::PodSandbox& pod : pods) {
      GANTRY_CHECK_OK(client_.StopPod(pod.id()));
      GANTRY_CHECK_OK(client_.RemovePod(pod.id()));
    }
    return {};
  }

  CriClient& client_;
  std::string kept_;
  PodConfig kept_config_;
};

}  // namespace

int ServeRounds(CriClient& client) {
  Rounds rounds(client);
  for (std::string text; std::getline(std::cin, text);) {
    const Result<double> took = rounds.Do(Parse(text));
    if (took) {
      std::cout << *took << std::endl;
    } else {
      std::cout << "! " << took.error().message << std::endl;
    }
  }
  return 0;
}

}  // namespace gantry::e2e
