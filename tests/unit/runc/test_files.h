// SPDX-License-Identifier: Apache-2.0
//
// Files, pipes and shells for the runc backend's tests.
#pragma once

#include <memory>
#include <string>

#include <gantry/testing/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry::runc {

/// A directory below /tmp, removed with all in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void MakeDir(const std::string& path);
void Write(const std::string& path, const std::string& text, int mode = 0644);
/// The file's text; "(none)" where there is no such file.
std::string Slurp(const std::string& path);
bool IsThere(const std::string& path);

/// The two ends of a pipe, CLOEXEC.
struct TestPipe {
  TestPipe();
  UniqueFd read_end;
  UniqueFd write_end;
};

/// As `gantry::RunShell`, which always can.
std::shared_ptr<FakeHostProcess> RunShell(const std::string& script);

}  // namespace gantry::runc
