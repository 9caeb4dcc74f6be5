// SPDX-License-Identifier: Apache-2.0
//
// The working directory and the program, which are the container's: looked up in its root, and
// executed with its rights alone.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// `cwd` in the root that the process is in, made where it is missing, as runc does: 0755, the
/// caller's. No magic link of /proc is followed: it would lead out of the root. Errors: the
/// errno's, with the path.
Status MakeWorkingDirectory(const std::string& cwd);

/// Enters `cwd`. Errors: kPermissionDenied: it leads out of the root, or may not be entered.
Status EnterWorkingDirectory(const std::string& cwd);

/// The file of `args[0]`: by the PATH of `env` where it has no slash. As the caller is, who may
/// execute it. Errors: kNotFound; kPermissionDenied: there is one that may not be executed.
Result<std::string> FindProgram(const oci::ProcessSpec& process);

/// The home directory of `uid` as the root's /etc/passwd has it; "/" where it says nothing of use.
/// It is the container's word, and nothing but the container goes by it.
std::string HomeOf(uid_t uid);

/// As execve(2) takes it.
class Command {
 public:
  Command(std::string file, std::vector<std::string> args, std::vector<std::string> env);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() = default;

  /// Returns only if it failed. Makes one system call.
  Status Execute() const;

 private:
  std::string file_;
  std::vector<std::string> args_;
  std::vector<std::string> env_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
};

}  // namespace gantry::container
