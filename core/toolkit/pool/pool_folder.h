// SPDX-License-Identifier: Apache-2.0
//
// Where processes that wait for a sandbox have their files: a directory of one engine's, with one
// in it for each of them. It is locked as long as that engine lives, so the next one knows what
// nobody needs any more, also where keeper and engine were killed both and there is no other trace
// of what they had started.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Thread: one at a time. Blocks: on files.
class PoolFolder {
 public:
  /// Below `root`, which is made for its owner alone where it is not there. What engines that
  /// are gone have left there is ended and removed first.
  static Result<std::unique_ptr<PoolFolder>> Make(const std::string& root);

  PoolFolder(const PoolFolder&) = delete;
  PoolFolder& operator=(const PoolFolder&) = delete;
  /// Removes it with all that is in it.
  ~PoolFolder();

  const std::string& path() const { return path_; }

  /// A new, empty directory.
  Result<std::string> NewEntry();

 private:
  PoolFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const UniqueFd lock_;
  uint64_t entries_ = 0;
};

/// Notes in the directory of an entry which process it is: if its engine is killed, it is ended
/// by that.
Status NoteProcess(const std::string& entry, const HostProcess& process);
/// It is somebody's. Again: success.
Status ForgetProcess(const std::string& entry);

}  // namespace gantry
