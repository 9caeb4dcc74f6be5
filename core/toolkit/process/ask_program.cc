// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/process/ask_program.h>
#include <gantry/unique_fd.h>

namespace gantry {
namespace {

/// posix_spawn takes pointers to mutable text and does not write to it.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 2);
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// A file with the question's input, to be read from its beginning; none where it is empty.
Result<UniqueFd> InputOf(const ProgramQuestion& question) {
  if (question.input.empty()) {
    return UniqueFd();
  }
  return SealedMemfd("input", question.input, MemfdUse::kRead);
}

Result<pid_t> Spawn(const ProgramQuestion& question, const UniqueFd& input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input) {
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (question.with_errors) {
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> argv = Pointers(question.arguments);
  argv.insert(argv.begin(), const_cast<char*>(question.program.c_str()));
  const std::vector<char*> env = Pointers(question.environment);
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

/// Children that have not ended although they were killed: the kernel has them in a call that does
/// not come back. Each time somebody is asked those that have ended meanwhile are reaped.
class Unended {
 public:
  /// Kills and reaps it, or keeps it.
  void End(pid_t pid) {
    constexpr std::chrono::seconds kEnds{2};
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t one) { return waitpid(one, nullptr, WNOHANG) != 0; });
    // Our own child, not yet reaped: the pid is its own.
    const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    kill(pid, SIGKILL);
    pollfd one = {pidfd.get(), POLLIN, 0};
    poll(&one, 1, PollTimeout(std::chrono::steady_clock::now() + kEnds));
    if (waitpid(pid, nullptr, WNOHANG) == 0) {
      pids_.push_back(pid);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

}  // namespace

Result<std::string> AskProgram(const ProgramQuestion& question) {
  GANTRY_TRY(auto ends, MakeBlockingPipe());
  const UniqueFd reader = std::move(ends.first);
  UniqueFd writer = std::move(ends.second);
  GANTRY_TRY(const UniqueFd input, InputOf(question));
  GANTRY_TRY(const pid_t pid, Spawn(question, input, writer.get()));
  writer.reset();
  std::string text = ReadUntil(reader.get(), question.max_bytes,
                               std::chrono::steady_clock::now() + question.limit);
  // It has said what it has to say.
  static Unended unended;
  unended.End(pid);
  return text;
}

}  // namespace gantry
