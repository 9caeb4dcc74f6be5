// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

extern char** environ;

namespace gantry::e2e {
namespace {

[[noreturn]] void Fatal(const char* what) {
  std::perror(what);
  std::abort();
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    Fatal("pipe2");
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void SetNonblocking(const UniqueFd& fd) {
  if (fd) {
    fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  }
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentOf(const std::map<std::string, std::string>& added) {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view word(*entry);
    if (!added.contains(std::string(word.substr(0, word.find('='))))) {
      words.emplace_back(word);
    }
  }
  for (const auto& [key, value] : added) {
    words.push_back(key + "=" + value);
  }
  return words;
}

std::string Tail(const std::string& text) {
  constexpr size_t kShown = 4000;
  return text.size() <= kShown ? text : "..." + text.substr(text.size() - kShown);
}

// What the child gets as its stdio, and how it is started.
class Spawner {
 public:
  Spawner() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
  }

  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  ~Spawner() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  void Give(int target, int fd) { posix_spawn_file_actions_adddup2(&actions_, fd, target); }

  void Open(int target, const std::string& path, int flags) {
    posix_spawn_file_actions_addopen(&actions_, target, path.c_str(), flags, 0644);
  }

  pid_t Start(std::vector<std::string> argv, std::vector<std::string> env) {
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, argv.front().c_str(), &actions_, &attributes_,
                                   Pointers(argv).data(), Pointers(env).data());
    if (error != 0) {
      errno = error;
      Fatal(argv.front().c_str());
    }
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string Output::Text() const {
  return "status " + std::to_string(status) + "\nstdout: " + Tail(out) + "\nstderr: " + Tail(err);
}

Program::Program(const std::vector<std::string>& argv, const Options& options) {
  Spawner spawner;
  Pipe in;
  Pipe out;
  Pipe err;
  if (options.terminal) {
    winsize size{options.rows, options.columns, 0, 0};
    int master = -1;
    int slave = -1;
    char name[64];
    if (openpty(&master, &slave, name, nullptr, &size) != 0) {
      Fatal("openpty");
    }
    in_.reset(fcntl(master, F_DUPFD_CLOEXEC, 3));
    out_fd_.reset(fcntl(master, F_DUPFD_CLOEXEC, 3));
    close(master);
    out.write.reset(slave);  // Held until the child has opened it by name.
    fcntl(slave, F_SETFD, FD_CLOEXEC);
    spawner.Open(0, name, O_RDWR);
    spawner.Give(1, 0);
    spawner.Give(2, 0);
  } else {
    if (options.input) {
      in = MakePipe();
      spawner.Give(0, in.read.get());
      in_ = std::move(in.write);
    } else {
      spawner.Open(0, "/dev/null", O_RDONLY);
    }
    if (options.log_path.empty()) {
      out = MakePipe();
      err = MakePipe();
      spawner.Give(1, out.write.get());
      spawner.Give(2, err.write.get());
      out_fd_ = std::move(out.read);
      err_fd_ = std::move(err.read);
    } else {
      spawner.Open(1, options.log_path, O_WRONLY | O_CREAT | O_APPEND);
      spawner.Give(2, 1);
    }
  }
  SetNonblocking(in_);
  SetNonblocking(out_fd_);
  SetNonblocking(err_fd_);
  pid_ = spawner.Start(argv, EnvironmentOf(options.env));
  pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      in_(std::move(other.in_)),
      out_fd_(std::move(other.out_fd_)),
      err_fd_(std::move(other.err_fd_)),
      close_input_(other.close_input_),
      queued_(std::move(other.queued_)),
      written_(other.written_),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      matched_(other.matched_),
      status_(other.status_) {}

Program::~Program() {
  if (pid_ > 0 && !status_) {
    kill(pid_, SIGKILL);
    Reap();
  }
}

void Program::Reap() {
  int raw = 0;
  while (waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  pidfd_.reset();
}

void Program::ReadFrom(UniqueFd& fd, std::string& to) {
  std::array<char, 65536> buffer;
  ssize_t count = read(fd.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EIO) {
    // A terminal's end is EIO twice: at the first, a rest may still be on its way.
    count = read(fd.get(), buffer.data(), buffer.size());
  }
  if (count > 0) {
    to.append(buffer.data(), static_cast<size_t>(count));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    fd.reset();
  }
}

void Program::WriteQueued() {
  const ssize_t count = write(in_.get(), queued_.data() + written_, queued_.size() - written_);
  if (count > 0) {
    written_ += static_cast<size_t>(count);
  } else if (errno != EAGAIN && errno != EINTR) {
    in_.reset();
  }
  if (written_ == queued_.size()) {
    queued_.clear();
    written_ = 0;
  }
}

// One turn; false when nothing can come any more.
bool Program::PumpOnce(Clock::time_point until) {
  if (close_input_ && queued_.empty()) {
    in_.reset();
  }
  std::array<pollfd, 4> polled{{{out_fd_.get(), POLLIN, 0},
                                {err_fd_.get(), POLLIN, 0},
                                {queued_.empty() ? -1 : in_.get(), POLLOUT, 0},
                                {pidfd_.get(), POLLIN, 0}}};
  if (!out_fd_ && !err_fd_ && !pidfd_) {
    return false;
  }
  const auto left = std::chrono::duration_cast<Duration>(until - Clock::now()).count();
  if (left <= 0 || poll(polled.data(), polled.size(), static_cast<int>(left) + 1) < 0) {
    return left > 0 && errno == EINTR;
  }
  if (polled[0].revents != 0) {
    ReadFrom(out_fd_, out_);
  }
  if (polled[1].revents != 0) {
    ReadFrom(err_fd_, err_);
  }
  if (polled[2].revents != 0) {
    WriteQueued();
  }
  if (polled[3].revents != 0) {
    Reap();
  }
  return true;
}

bool Program::Pump(const std::function<bool()>& done, Duration deadline) {
  const auto until = Clock::now() + deadline;
  while (!done()) {
    if (!PumpOnce(until)) {
      return done();
    }
  }
  return true;
}

bool Program::ReadUntil(std::string_view text, Duration deadline) {
  const auto found = [&] {
    // Only the part not searched yet would do; the texts are small.
    const size_t at = out_.find(text, matched_);
    if (at == std::string::npos) {
      return false;
    }
    matched_ = at + text.size();
    return true;
  };
  return Pump(found, deadline);
}

bool Program::ReadWhile(const std::function<bool()>& done, Duration deadline) {
  return Pump(done, deadline);
}

std::optional<std::string> Program::ReadLine(Duration deadline) {
  const size_t begin = matched_;
  if (!ReadUntil("\n", deadline)) {
    return std::nullopt;
  }
  std::string line = out_.substr(begin, matched_ - begin - 1);
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
  }
  return line;
}

void Program::Write(std::string_view data) { queued_ += data; }

void Program::CloseInput() {
  close_input_ = true;
  if (queued_.empty()) {
    in_.reset();
  }
}

bool Program::Flush(Duration deadline) {
  return Pump([this] { return queued_.empty(); }, deadline);
}

void Program::Resize(unsigned short rows, unsigned short columns) {
  const winsize size{rows, columns, 0, 0};
  ioctl(in_.get(), TIOCSWINSZ, &size);  // The kernel tells the foreground with SIGWINCH.
}

void Program::Kill(int signal) const {
  if (!status_) {
    kill(pid_, signal);
  }
}

int Program::Wait(Duration deadline) {
  const bool ended = Pump([this] { return status_.has_value() && !out_fd_ && !err_fd_; }, deadline);
  if (!ended && !status_) {
    kill(pid_, SIGKILL);
    Reap();
    status_ = Output::kTimedOut;
  }
  return *status_;
}

Output Program::Finish(Duration deadline) {
  Output output;
  output.status = Wait(deadline);
  output.out = out_;
  output.err = err_;
  return output;
}

Output RunProgram(const std::vector<std::string>& argv, std::optional<std::string_view> input,
                  Duration deadline) {
  Program::Options options;
  options.input = input.has_value();
  Program program(argv, options);
  if (input) {
    program.Write(*input);
    program.CloseInput();
  }
  return program.Finish(deadline);
}

}  // namespace gantry::e2e
