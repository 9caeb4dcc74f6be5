// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLookAgain = std::chrono::milliseconds(10);

bool AllDigits(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

HostProcess ReadProcess(pid_t pid) {
  const std::string base = "/proc/" + std::to_string(pid);
  HostProcess process;
  process.pid = pid;
  process.command = ReadText(base + "/cmdline");
  process.name = fs::path(process.command.substr(0, process.command.find('\0'))).filename();
  std::ranges::replace(process.command, '\0', ' ');
  const std::string stat = ReadText(base + "/stat");
  const size_t end = stat.rfind(')');
  if (end != std::string::npos) {
    std::istringstream rest(stat.substr(end + 1));
    char state = 0;
    rest >> state >> process.parent;
  }
  return process;
}

// Mount points are written with \040 for a blank and so on.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteText(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> FindNames(const std::string& root, std::string_view part) {
  std::vector<std::string> found;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(root, options, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().find(part) != std::string::npos) {
      found.push_back(it->path());
    }
  }
  return found;
}

std::vector<HostProcess> Processes(const std::function<bool(const HostProcess&)>& wanted) {
  std::vector<HostProcess> found;
  for (const std::string& name : ListFolder("/proc")) {
    if (!AllDigits(name)) {
      continue;
    }
    HostProcess process = ReadProcess(static_cast<pid_t>(std::stol(name)));
    if (wanted(process)) {
      found.push_back(std::move(process));
    }
  }
  return found;
}

std::vector<HostProcess> ProcessesWithEnv(const std::string& entry) {
  return Processes([&](const HostProcess& process) {
    const std::string env =
        '\0' + ReadText("/proc/" + std::to_string(process.pid) + "/environ") + '\0';
    return process.pid != getpid() && env.find('\0' + entry + '\0') != std::string::npos;
  });
}

std::vector<HostProcess> ProcessesInCgroup(const std::string& part) {
  return Processes([&](const HostProcess& process) {
    return ReadText("/proc/" + std::to_string(process.pid) + "/cgroup").find(part) !=
           std::string::npos;
  });
}

std::string Describe(const std::vector<HostProcess>& processes) {
  std::string text;
  for (const HostProcess& process : processes) {
    text += "\n  " + std::to_string(process.pid) + " (child of " + std::to_string(process.parent) +
            ") " + process.command;
  }
  return text;
}

int CountDescriptors(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error) {
    return -1;
  }
  int count = 0;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

bool WaitGone(pid_t pid, Duration deadline) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    return true;
  }
  pollfd polled{pidfd.get(), POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(deadline.count())) == 1;
}

std::vector<std::string> MountsBelow(const std::string& path) {
  std::vector<std::string> found;
  std::istringstream lines(ReadText("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string point;
    words >> skipped >> skipped >> skipped >> skipped >> point;
    point = Unescape(point);
    if (point == path || point.starts_with(path + "/")) {
      found.push_back(point);
    }
  }
  std::ranges::reverse(found);
  return found;
}

std::vector<std::string> CgroupFolders(const std::string& relative) {
  std::vector<std::string> found;
  std::vector<std::string> roots{"/sys/fs/cgroup"};
  for (const std::string& name : ListFolder("/sys/fs/cgroup")) {
    roots.push_back("/sys/fs/cgroup/" + name);
  }
  std::error_code error;
  for (const std::string& root : roots) {
    if (fs::is_directory(root + relative, error)) {
      found.push_back(root + relative);
    }
  }
  return found;
}

std::string MemoryLimitFile(const std::string& relative) {
  const std::string tree = "/sys/fs/cgroup/memory";
  const std::string folder = (std::filesystem::exists(tree) ? tree : "/sys/fs/cgroup") + relative;
  std::filesystem::create_directories(folder);
  const std::string v1 = folder + "/memory.limit_in_bytes";
  return std::filesystem::exists(v1) ? v1 : folder + "/memory.max";
}

bool Eventually(const std::function<bool()>& condition, Duration deadline) {
  const auto until = Clock::now() + deadline;
  while (!condition()) {
    if (Clock::now() >= until) {
      return condition();
    }
    poll(nullptr, 0, static_cast<int>(kLookAgain.count()));
  }
  return true;
}

bool WaitForText(const std::string& path, std::string_view text, size_t offset, Duration deadline) {
  const UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string folder = fs::path(path).parent_path();
  inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
  const auto until = Clock::now() + deadline;
  for (;;) {
    if (ReadText(path).find(text, offset) != std::string::npos) {
      return true;
    }
    const auto left = std::chrono::duration_cast<Duration>(until - Clock::now()).count();
    pollfd polled{watch.get(), POLLIN, 0};
    if (left <= 0 || poll(&polled, 1, static_cast<int>(left)) == 0) {
      return false;
    }
    char events[4096];
    while (read(watch.get(), events, sizeof(events)) > 0) {
    }
  }
}

}  // namespace gantry::e2e
