// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/server/proc.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace gantry::remote {
namespace {

namespace fs = std::filesystem;

std::string NamespaceOf(const std::string& pid) {
  std::error_code error;
  return fs::read_symlink("/proc/" + pid + "/ns/pid", error);
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<pid_t> ProcessesInside(pid_t init) {
  std::vector<pid_t> found;
  const std::string wanted = NamespaceOf(std::to_string(init));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (!wanted.empty() && IsNumber(name) && NamespaceOf(name) == wanted) {
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return found;
}

uint32_t NumberInside(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) {
      return static_cast<uint32_t>(std::stoul(line.substr(line.find_last_of(" \t"))));
    }
  }
  return 0;
}

Usage UsageOf(const std::vector<pid_t>& pids) {
  Usage sum;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const pid_t pid : pids) {
    const std::string folder = "/proc/" + std::to_string(pid);
    uint64_t cpu_ns = 0;
    std::ifstream(folder + "/schedstat") >> cpu_ns;
    uint64_t mapped = 0;
    uint64_t resident = 0;
    std::ifstream(folder + "/statm") >> mapped >> resident;
    sum.cpu_ns += cpu_ns;
    sum.memory_bytes += resident * page;
  }
  return sum;
}

}  // namespace gantry::remote
