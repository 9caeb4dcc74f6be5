// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/systemd.h"

#include <cstdlib>

#include "tests/harness/host.h"

namespace gantry::node {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

e2e::Output Systemctl(const std::vector<std::string>& words) {
  std::vector<std::string> all{"systemctl"};
  all.insert(all.end(), words.begin(), words.end());
  return e2e::RunProgram(all, std::nullopt, e2e::kLong);
}

std::string ActiveState(const std::string& unit) { return Property(unit, "ActiveState"); }

std::string Property(const std::string& unit, const std::string& name) {
  return FirstLine(Systemctl({"show", "-P", name, unit}).out);
}

pid_t MainPid(const std::string& unit) {
  return static_cast<pid_t>(std::atol(Property(unit, "MainPID").c_str()));
}

std::string CgroupOf(pid_t pid) {
  const std::string line = FirstLine(e2e::ReadText("/proc/" + std::to_string(pid) + "/cgroup"));
  return line.starts_with("0::") ? line.substr(3) : "";
}

}  // namespace gantry::node
