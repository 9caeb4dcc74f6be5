// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/figures.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "tests/harness/host.h"

namespace gantry::bench {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
constexpr int kLooks = 80;
constexpr int kAgree = 10;
constexpr double kSettled = 0.005;

std::string Folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

bool RunsFrom(pid_t pid, const std::string& folder) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(Folder(pid) + "/exe", error);
  return !error && program.string().starts_with(folder + "/");
}

}  // namespace

std::vector<pid_t> Processes(const Lab& lab, const Side& side) {
  const std::string run_dir =
      side.stock ? "" : '\0' + ("GANTRY_RUN_DIR=" + side.env.at("GANTRY_RUN_DIR")) + '\0';
  const auto found = e2e::Processes([&](const e2e::HostProcess& process) {
    if (side.stock) {
      return process.name == "containerd-shim-runc-v2" &&
             process.command.find("-address " + lab.root() + "/") != std::string::npos;
    }
    return RunsFrom(process.pid, lab.programs()) &&
           ('\0' + e2e::ReadText(Folder(process.pid) + "/environ")).find(run_dir) !=
               std::string::npos;
  });
  std::vector<pid_t> pids;
  for (const e2e::HostProcess& process : found) {
    pids.push_back(process.pid);
  }
  return pids;
}

pid_t ContainerdOf(const Lab& lab) {
  const auto found = e2e::Processes([&](const e2e::HostProcess& process) {
    return process.command.find(lab.root() + "/containerd.toml") != std::string::npos;
  });
  return found.empty() ? -1 : found.front().pid;
}

double PssKib(const std::vector<pid_t>& pids, Pages pages) {
  const std::vector<std::string> fields = pages == Pages::kAll
                                              ? std::vector<std::string>{"Pss:"}
                                              : std::vector<std::string>{"Pss_Anon:", "Pss_Shmem:"};
  double sum = 0;
  for (const pid_t pid : pids) {
    std::istringstream lines(e2e::ReadText(Folder(pid) + "/smaps_rollup"));
    for (std::string line; std::getline(lines, line);) {
      for (const std::string& field : fields) {
        sum += line.starts_with(field) ? std::stod(line.substr(field.size())) : 0;
      }
    }
  }
  return sum;
}

double SettledPssKib(const Lab& lab, const Side& side, Pages pages) {
  return SettledPssKib([&] { return Processes(lab, side); }, pages);
}

double SettledPssKib(const std::function<std::vector<pid_t>()>& pids, Pages pages) {
  double settled = 0;
  int agree = 0;
  for (int look = 0; look < kLooks && agree < kAgree; ++look) {
    const double now = PssKib(pids(), pages);
    if (std::abs(now - settled) <= kSettled * now) {
      ++agree;
    } else {
      settled = now;
      agree = 0;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return settled;
}

double CpuMilliseconds(const std::vector<pid_t>& pids) {
  double sum = 0;
  for (const pid_t pid : pids) {
    for (const std::string& thread : e2e::ListFolder(Folder(pid) + "/task")) {
      std::istringstream words(e2e::ReadText(Folder(pid) + "/task/" + thread + "/schedstat"));
      double nanoseconds = 0;
      words >> nanoseconds;
      sum += nanoseconds / 1e6;
    }
  }
  return sum;
}

double EndedChildrenMilliseconds(const std::vector<pid_t>& pids) {
  // The 16th and the 17th; the second, in parentheses, may hold anything.
  constexpr int kBefore = 13;
  const double tick = 1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  double sum = 0;
  for (const pid_t pid : pids) {
    const std::string stat = e2e::ReadText(Folder(pid) + "/stat");
    std::istringstream words(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string skipped;
    for (int i = 0; i < kBefore; ++i) {
      words >> skipped;
    }
    double user = 0;
    double system = 0;
    words >> user >> system;
    sum += (user + system) * tick;
  }
  return sum;
}

}  // namespace gantry::bench
