// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/pods.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

namespace gantry::bench {

Result<Pods> Pods::Start(Lab& lab, const std::string& image) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  const std::string cri =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/cri";
  const std::string address = "unix://" + node->address();
  const e2e::Output ready =
      e2e::RunProgram({cri, "--address", address, "wait", image, "registry.k8s.io/pause:gantry"});
  if (ready.status != 0) {
    return Fail(Code::kUnavailable, "wait for CRI: {}", ready.Text());
  }
  e2e::Program::Options options;
  options.input = true;
  return Pods(e2e::Program({cri, "--address", address, "rounds"}, options));
}

Result<double> Pods::Do(const std::string& line) {
  program_.Write(line + "\n");
  const std::optional<std::string> answer = program_.ReadLine(e2e::kLong);
  if (!answer || answer->empty() || answer->starts_with('!')) {
    return Fail(Code::kInternal, "{}: {}", line, answer ? *answer : "no answer");
  }
  return std::atof(answer->c_str());
}

Result<Phases> Pods::Timed(Lab& lab, const std::string& word, const std::string& handler,
                           const std::string& rest) {
  Phases phases;
  const std::string name = lab.NewId(lab.Stock("runc"));
  GANTRY_TRY(const double took, Do(word + " " + handler + " " + name + " " + rest));
  phases.Add(word, took);
  return phases;
}

}  // namespace gantry::bench
