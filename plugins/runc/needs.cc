// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/needs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/files.h>

namespace gantry::runc {
namespace {

constexpr std::chrono::seconds kVersionLimit{2};
constexpr size_t kMaxVersionBytes = 4096;

/// The child's process id, or -1.
pid_t SpawnVersion(const std::string& binary, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = binary;
  std::string flag = "--version";
  std::array<char*, 3> argv = {program.data(), flag.data(), nullptr};
  std::array<char*, 1> env = {nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, binary.c_str(), &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

std::string ReadUntil(int pipe_end, Deadline deadline) {
  std::string text;
  std::array<char, 512> buffer{};
  pollfd one = {pipe_end, POLLIN, 0};
  while (text.size() < kMaxVersionBytes && poll(&one, 1, PollTimeout(deadline)) > 0) {
    const ssize_t n = read(pipe_end, buffer.data(), buffer.size());
    if (n <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

NodeNeed RuntimeNeed(const Options& options) {
  NodeNeed need;
  need.what = "an OCI runtime";
  const auto binary = FindRuntime(options);
  if (!binary) {
    need.detail = binary.error().message;
    return need;
  }
  const std::string version = AskVersion(*binary);
  need.met = !version.empty();
  need.detail = need.met ? *binary + ": " + version
                         : *binary + ": does not answer '--version'; install it again";
  return need;
}

NodeNeed CgroupNeed(const Options& options, const std::string& root) {
  NodeNeed need;
  need.what = "cgroups";
  need.met = true;
  const CgroupMode mode = DetectCgroups(root);
  switch (mode) {
    case CgroupMode::kNone:
      return {.what = "cgroups", .detail = root + ": not mounted; mount cgroup2 there"};
    case CgroupMode::kV1:
      need.detail = "v1";
      return need;
    case CgroupMode::kV2:
      need.detail = "v2";
      return need;
    case CgroupMode::kHybrid:
      need.detail = "v1 with v2 beside it";
  }
  const auto binary = FindRuntime(options);
  const auto left = ReadFile(root + "/unified/cgroup.controllers", kMaxVersionBytes);
  if (binary && binary->ends_with("/crun") && left && left->size() > 1) {
    need.detail +=
        "; crun may refuse this while v2 has controllers: " + left->substr(0, left->find('\n')) +
        " (mount them as v1, or use runc)";
  }
  return need;
}

NodeNeed CriuNeed(const Options& options) {
  const auto criu = FindCriu(options);
  return {.what = "criu, for checkpoint and restore",
          .met = criu.has_value(),
          .optional = true,
          .detail = criu ? *criu : criu.error().message};
}

}  // namespace

std::string AskVersion(const std::string& binary) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t pid = SpawnVersion(binary, writer.get());
  writer.reset();
  if (pid < 0) {
    return {};
  }
  const std::string text =
      ReadUntil(reader.get(), std::chrono::steady_clock::now() + kVersionLimit);
  // Our own child, not yet reaped: the pid is its own. It has said what it
  // has to say.
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text.substr(0, text.find('\n'));
}

std::vector<NodeNeed> FindNeeds(const Options& options, const std::string& cgroup_root) {
  return {RuntimeNeed(options), CgroupNeed(options, cgroup_root), CriuNeed(options)};
}

}  // namespace gantry::runc
