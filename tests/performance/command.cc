// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/unique_fd.h>

#include "tests/performance/samples.h"

extern char** environ;

namespace gantry::bench {
namespace {

constexpr auto kDeadline = std::chrono::seconds(30);

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string word(*entry);
    if (!added.contains(word.substr(0, word.find('=')))) {
      words.push_back(word);
    }
  }
  for (const auto& [key, value] : added) {
    words.push_back(key + "=" + value);
  }
  return words;
}

/// What the child needs, made before the clock starts.
class Launch {
 public:
  explicit Launch(const Command& command)
      : argv_(command.argv),
        env_(Environment(command.env)),
        argv_pointers_(Pointers(argv_)),
        env_pointers_(Pointers(env_)) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addchdir_np(&actions_, command.folder.c_str());
    for (size_t i = 0; i < pipes_.size(); ++i) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) {
        failed_ = errno;
        return;
      }
      pipes_[i] = {UniqueFd(ends[0]), UniqueFd(ends[1])};
      posix_spawn_file_actions_adddup2(&actions_, pipes_[i][i == 0 ? 0 : 1].get(),
                                       static_cast<int>(i));
    }
    if (write(pipes_[0][1].get(), command.input.data(), command.input.size()) < 0) {
      failed_ = errno;
    }
    pipes_[0][1].reset();
  }

  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  ~Launch() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  Result<pid_t> Start() {
    pid_t pid = -1;
    const int error = failed_ != 0
                          ? failed_
                          : posix_spawn(&pid, argv_.front().c_str(), &actions_, &attributes_,
                                        argv_pointers_.data(), env_pointers_.data());
    for (auto& ends : pipes_) {
      ends[&ends == &pipes_[0] ? 0 : 1].reset();
    }
    if (error != 0) {
      return FailErrno(error, "run '{}'", argv_.front());
    }
    return pid;
  }

  UniqueFd& out() { return pipes_[1][0]; }

  UniqueFd& err() { return pipes_[2][0]; }

 private:
  std::vector<std::string> argv_;
  std::vector<std::string> env_;
  std::vector<char*> argv_pointers_;
  std::vector<char*> env_pointers_;
  std::array<std::array<UniqueFd, 2>, 3> pipes_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int failed_ = 0;
};

void ReadFrom(UniqueFd& fd, std::string& to) {
  std::array<char, 4096> buffer;
  const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) {
    to.append(buffer.data(), static_cast<size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    fd.reset();
  }
}

/// Reads both streams to their end; false when that takes too long.
bool ReadAll(Launch& launch, std::string& out, std::string& err) {
  const auto until = Clock::now() + kDeadline;
  while (launch.out() || launch.err()) {
    std::array<pollfd, 2> polled{
        {{launch.out().get(), POLLIN, 0}, {launch.err().get(), POLLIN, 0}}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    poll(polled.data(), polled.size(), static_cast<int>(left));
    if (polled[0].revents != 0) {
      ReadFrom(launch.out(), out);
    }
    if (polled[1].revents != 0) {
      ReadFrom(launch.err(), err);
    }
  }
  return true;
}

}  // namespace

Result<Finished> Run(const Command& command) {
  Launch launch(command);
  Finished finished;
  std::string err;
  const auto begin = Clock::now();
  GANTRY_TRY(const pid_t pid, launch.Start());
  const bool ended = ReadAll(launch, finished.out, err);
  if (!ended) {
    kill(-pid, SIGKILL);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.milliseconds = MillisecondsSince(begin);
  if (!ended) {
    return Fail(Code::kDeadlineExceeded, "run '{}': no end after 30 s", command.argv.front());
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Fail(Code::kInternal, "run '{} {}': wait status {}: {}{}", command.argv.front(),
                command.argv.back(), status, finished.out, err);
  }
  return finished;
}

}  // namespace gantry::bench
