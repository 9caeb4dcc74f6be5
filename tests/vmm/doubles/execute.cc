// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/doubles/execute.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gantry/unique_fd.h>

namespace gantry::test {
namespace {

/// Beyond all that a program is told to expect.
constexpr int kFree = 200;

std::vector<char*> Words(const std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));  // NOLINT(*-const-cast): execveat(2)
  }
  all.push_back(nullptr);
  return all;
}

struct Move {
  int from;
  int to;
};

/// Behind fork(2), of a process with threads: system calls alone. Two steps, since one's place may
/// be where another one still is.
[[noreturn]] void Become(int program, char* const* argv, char* const* env, std::vector<Move>& moves,
                         int nothing) {
  for (Move& one : moves) {
    one.from = fcntl(one.from, F_DUPFD_CLOEXEC, kFree);
  }
  dup2(nothing, STDIN_FILENO);
  for (const Move& one : moves) {
    dup2(one.from, one.to);
  }
  execveat(program, "", argv, env, AT_EMPTY_PATH);
  _exit(127);
}

}  // namespace

Result<pid_t> Execute(const SpawnRequest& request) {
  const std::vector<char*> argv = Words(request.argv);
  const std::vector<char*> env = Words(request.env);
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<Move> moves;
  for (const auto& [fd, number] : request.fds) {
    moves.push_back({.from = fd.get(), .to = number});
  }
  const pid_t child = fork();
  if (child < 0) {
    return FailErrno(errno, "start '{}'", request.argv.at(0));
  }
  if (child == 0) {
    Become(request.program.get(), argv.data(), env.data(), moves, nothing.get());
  }
  return child;
}

int AwaitChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace gantry::test
