// SPDX-License-Identifier: Apache-2.0
//
// Artifacts on disk: DIRECTORY/v1/AB/KEY, KEY from `EntryId`, AB its first two digits. They are
// machine code that a container is to run, so they are of root alone, and nothing of a file is
// believed that its hash does not cover: what is handed out is a copy in memory that was hashed
// while it was made and cannot be changed any more, whatever becomes of the file.
//
// Two processes may work on one directory: a file is there whole or not at all, and one of them
// at a time makes an entry.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/cache/entry.h"

namespace gantry::wasm {

/// Thread: any, several at a time. Blocks: all, as the file system does.
class ArtifactStore {
 public:
  struct Found {
    EntryHeader header;
    /// The artifact, or the text of the error, in a sealed file in memory, open for reading.
    UniqueFd content;
  };

  /// An entry, for who wants to see what there is.
  struct Listed {
    std::string key;
    EntryHeader header;
    /// Of the file, with its header.
    uint64_t bytes = 0;
    /// Seconds since the epoch, to the hour.
    int64_t used_at = 0;
  };

  /// What `Trim` and `Clean` have left, and how many they have removed.
  struct Kept {
    uint64_t entries = 0;
    uint64_t bytes = 0;
    uint64_t removed = 0;
  };

  /// `directory`: absolute; it is made when something is to be kept, and its parents, too.
  ArtifactStore(std::string directory, uint64_t max_bytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  /// `now`: seconds since the epoch.
  /// Errors: kNotFound: it is not there, or is kept no longer; kDataLoss: something is wrong with
  /// it, it has been removed; kFailedPrecondition: the directory is not root's alone; the errno's.
  Result<Found> Load(const EntryId& id, int64_t now) const;
  /// Keeps what is in the file `content`, in the place of what was there. `header` without hash.
  /// Errors: as of `Load`; the errno's: nothing is left of it.
  Status Save(EntryHeader header, const UniqueFd& content, int64_t now) const;
  /// Makes room: what nobody keeps any longer goes, entries of other compilers that nobody has
  /// used for a week, what writers have left that were killed, and those used longest ago until
  /// no more than the limit is there.
  Result<Kept> Trim(const Sha256Digest& compiler, int64_t now) const;
  /// Removes those that are of no module in `used` and were last used before `before`.
  Result<Kept> Clean(const std::set<Sha256Digest>& used, int64_t before, int64_t now) const;
  /// It is time to clean: that has not been so for `every` seconds, for any process that asks. For
  /// the first who asks it is not. Errors: as of `Load`.
  Result<bool> IsToBeCleaned(int64_t now, int64_t every) const;
  /// The right to make this entry, among the processes of the node: until the descriptor is closed,
  /// or this process ends. Another lock of the same process counts as another process's. Blocks:
  /// never for one. Errors: kAborted: another one has it; else it cannot be had here.
  Result<UniqueFd> Lock(const EntryId& id) const;
  /// It has been used. At most once an hour is that written down.
  void Touch(const EntryId& id, int64_t now) const;
  /// All that can be read; their hashes are not looked at.
  Result<std::vector<Listed>> List() const;

 private:
  struct File;
  using Goes = std::function<bool(const File& file)>;

  Result<UniqueFd> OpenRoot(bool make) const;
  Result<UniqueFd> OpenFolder(const std::string& key, bool make) const;
  /// All files, those used longest ago first.
  Result<std::vector<File>> Files(const UniqueFd& root, int64_t now) const;
  Result<Kept> Remove(int64_t now, uint64_t max_bytes, const Goes& goes) const;

  const std::string directory_;
  const uint64_t max_bytes_;
};

}  // namespace gantry::wasm
