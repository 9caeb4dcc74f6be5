// SPDX-License-Identifier: Apache-2.0
//
// gantry-vsock as a process of its own, with its sockets in a directory.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

class Program {
 public:
  /// Its sockets are `front` and `v` in the directory. Its standard error is this process's.
  Program(const std::string& path, const std::string& directory,
          const std::vector<std::string>& more = {})
      : front_end_(*ListenUnix(directory + "/front")), hosts_(*ListenUnix(directory + "/v")) {
    const UniqueFd place(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::vector<std::string> words{path,
                                   Format("--front-end={}", front_end_.get()),
                                   Format("--hosts={}", hosts_.get()),
                                   Format("--directory={}", place.get()),
                                   "--name=v",
                                   "--guest-cid=3"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      for (const int one : {front_end_.get(), hosts_.get(), place.get()}) {
        fcntl(one, F_SETFD, 0);
      }
      // The leak check wants /proc, which the program cannot see any more.
      setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      execv(path.c_str(), arguments.data());
      _exit(127);
    }
    front_end_.reset();
    hosts_.reset();
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }

  pid_t pid() const { return pid_; }

  /// The status that waitpid has for it.
  int Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  UniqueFd front_end_;
  UniqueFd hosts_;
  pid_t pid_ = -1;
};

}  // namespace gantry::vmm::vsock
