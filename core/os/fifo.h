// SPDX-License-Identifier: Apache-2.0
//
// Fifos, pipes and terminals as objects that can be opened again: through
// /proc/self/fd every descriptor of one gives another, with a mode and an open
// file description of its own. Moving bytes through them is in `splice.h`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// A descriptor that only names the file: opening it has no effect on anybody
/// and never blocks.
Result<UniqueFd> OpenName(const std::string& path);

bool IsFifo(int fd);
bool IsTerminal(int fd);

enum class PipeEnd { kRead, kWrite, kBoth };

/// Another end of the fifo or pipe behind `fd` (also one from `OpenName`),
/// nonblocking. Errors: kNotFound (ENXIO) for `kWrite` where nobody has it open
/// for reading; a reader that is blocked in its open(2) counts.
/// Blocks: never.
Result<UniqueFd> OpenPipeEnd(int fd, PipeEnd end);

/// The write end of the fifo behind `fd`, nonblocking, also where nobody has it
/// open for reading. Blocks: never.
Result<UniqueFd> OpenWriteEnd(int fd);

/// Changes the owner of the file behind `fd`.
Status ChangeOwner(int fd, std::optional<uid_t> uid, std::optional<gid_t> gid);

/// Whether somebody has the other end of this write end open for reading.
bool HasReader(int write_end);

/// For writing, made with `mode` if absent. Not for appending: splice(2) refuses that.
Result<UniqueFd> OpenLogFile(const std::string& path, mode_t mode);

/// Moves the file's position behind its last byte.
Status SeekToEnd(int fd);

/// TIOCSWINSZ, on either side of a terminal.
Status SetWindowSize(int fd, uint16_t columns, uint16_t rows);

bool IsStreamSocket(int fd);
/// Half-closes a socket. Again: harmless.
Status ShutDownWriting(int socket);

/// Becomes readable when one of its files is opened or read by anybody (an inotify
/// instance). Thread: any, one at a time.
class FileUse {
 public:
  /// What has happened.
  struct Used {
    /// Each once, as `Add` named them.
    std::vector<int> files;
    /// The kernel could not keep count: any of them, too.
    bool lost = false;
  };

  /// Without a file. Errors: kResourceExhausted: the user has no instance left.
  static Result<FileUse> Open();
  /// With one file.
  static Result<FileUse> Watch(int fd);

  int fd() const { return fd_.get(); }

  /// `fd`: any descriptor of the file. Uses before this call are not seen. Gives what
  /// `Used` names it by, for one file always the same.
  /// Errors: kResourceExhausted: the user has no watch left.
  Result<int> Add(int fd);
  void Remove(int file);

  /// Takes what has been reported, so that `fd` is no longer readable.
  Used Take();

 private:
  explicit FileUse(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

/// Blocks every signal but those of faults on the calling thread. For threads
/// that write to pipes: EPIPE is an answer there, not a death.
void BlockSignals();

}  // namespace gantry::os
