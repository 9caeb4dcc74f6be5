// SPDX-License-Identifier: Apache-2.0
//
// The process behind `RunscHost`. A request and its answer are a line of JSON each:
// {"argv": [...], "count": 8, "at_once": 2} is answered with {"value": ms} or {"failure": text};
// "at_once": 0 leaves the program running, and "value" is its pid.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/unique_fd.h>

#include "tests/performance/runsc_host.h"
#include "tests/performance/samples.h"

extern char** environ;

namespace gantry::bench {
namespace {

using Json = nlohmann::json;

/// How its programs are started. Made before the clock runs.
class Spawner {
 public:
  Spawner(Words argv, const std::string& log) : argv_(std::move(argv)) {
    for (std::string& word : argv_) {
      pointers_.push_back(word.data());
    }
    pointers_.push_back(nullptr);
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 2, log.c_str(), O_WRONLY | O_APPEND, 0);
    posix_spawnattr_init(&attributes_);
    // Ours are blocked, to be read from a descriptor.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }

  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  ~Spawner() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  Result<pid_t> Spawn() {
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, pointers_[0], &actions_, &attributes_, pointers_.data(), environ);
    if (error != 0) {
      return FailErrno(error, "run '{}'", argv_.front());
    }
    return pid;
  }

 private:
  Words argv_;
  std::vector<char*> pointers_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Json Failure(const std::string& text) { return {{"failure", text}}; }

/// `count` of them, so many at once, and whatever orphan ends meanwhile.
Json RunThem(Spawner& spawner, int count, int at_once) {
  std::set<pid_t> running;
  int started = 0;
  std::string failure;
  const auto begin = Clock::now();
  while (started < count || !running.empty()) {
    while (failure.empty() && started < count && static_cast<int>(running.size()) < at_once) {
      const auto pid = spawner.Spawn();
      if (!pid) {
        return Failure(pid.error().message);
      }
      running.insert(*pid);
      ++started;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) {
      return Failure("there is nothing to wait for");
    }
    if (running.erase(ended) != 0 && status != 0) {
      failure = "wait status " + std::to_string(status);
      started = count;
    }
  }
  const double took = MillisecondsSince(begin);
  return failure.empty() ? Json{{"value", took}} : Failure(failure);
}

Json Answer(const std::string& line, const std::string& log) {
  const Json request = Json::parse(line, nullptr, false);
  if (!request.is_object()) {
    return Failure("no request: " + line);
  }
  if (truncate(log.c_str(), 0) != 0) {
    return Failure("no file '" + log + "'");
  }
  Spawner spawner(request.at("argv").get<Words>(), log);
  const int at_once = request.value("at_once", 1);
  if (at_once > 0) {
    return RunThem(spawner, request.value("count", 1), at_once);
  }
  const auto pid = spawner.Spawn();
  return pid ? Json{{"value", *pid}} : Failure(pid.error().message);
}

void ReapOrphans() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// The next line of stdin; none: it has ended. Reaps while there is none.
std::optional<std::string> NextLine(const UniqueFd& children, std::string& read_ahead) {
  while (true) {
    if (const size_t end = read_ahead.find('\n'); end != std::string::npos) {
      std::string line = read_ahead.substr(0, end);
      read_ahead.erase(0, end + 1);
      return line;
    }
    std::array<pollfd, 2> polled{{{STDIN_FILENO, POLLIN, 0}, {children.get(), POLLIN, 0}}};
    poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) {
      signalfd_siginfo info{};
      if (read(children.get(), &info, sizeof(info)) > 0) {
        ReapOrphans();
      }
    }
    if (polled[0].revents == 0) {
      continue;
    }
    std::array<char, 4096> buffer{};
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got <= 0) {
      return std::nullopt;
    }
    read_ahead.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

int ServeRunsc(const std::string& log) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const UniqueFd signals(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  const UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!signals || !file) {
    std::perror("bench: serve runsc");
    return EXIT_FAILURE;
  }
  std::string read_ahead;
  while (const auto line = NextLine(signals, read_ahead)) {
    std::printf("%s\n", Answer(*line, log).dump().c_str());
    std::fflush(stdout);
  }
  return EXIT_SUCCESS;
}

}  // namespace gantry::bench
