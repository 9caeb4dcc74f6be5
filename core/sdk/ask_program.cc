// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <gantry/ask_program.h>
#include <gantry/deadline.h>
#include <gantry/unique_fd.h>

namespace gantry {
namespace {

Result<pid_t> Spawn(const ProgramQuestion& question, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (question.with_errors) {
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  // posix_spawn takes pointers to mutable text and does not write to it.
  std::vector<char*> argv = {const_cast<char*>(question.program.c_str())};
  for (const std::string& argument : question.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::array<char*, 1> env = {nullptr};
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, question.program.c_str(), &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return FailErrno(error, "run '{}'", question.program);
  }
  return pid;
}

std::string ReadUntil(int pipe_end, size_t max_bytes, Deadline deadline) {
  std::string text;
  std::array<char, 4096> buffer{};
  pollfd one = {pipe_end, POLLIN, 0};
  while (text.size() < max_bytes && poll(&one, 1, PollTimeout(deadline)) > 0) {
    const ssize_t n = read(pipe_end, buffer.data(), buffer.size());
    if (n <= 0) {
      break;
    }
    text.append(buffer.data(), std::min(static_cast<size_t>(n), max_bytes - text.size()));
  }
  return text;
}

}  // namespace

Result<std::string> AskProgram(const ProgramQuestion& question) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return FailErrno(errno, "run '{}': make a pipe", question.program);
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  GANTRY_TRY(const pid_t pid, Spawn(question, writer.get()));
  writer.reset();
  std::string text = ReadUntil(reader.get(), question.max_bytes,
                               std::chrono::steady_clock::now() + question.limit);
  // Our own child, not yet reaped: the pid is its own. It has said what it has to say.
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace gantry
