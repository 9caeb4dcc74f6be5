// SPDX-License-Identifier: Apache-2.0
//
// Where templates lie: DIRECTORY/templates/NAME, each a file system in memory of its own that is as
// large as its VM may make it, with
//
//   state   the VM with its memory, which its VMM writes, and from then on nobody
//   key     what it depends on (template_key.h), written last: without it there is no template
//
// NAME is the key's fingerprint. They outlive an engine: the next one needs no boot to begin with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/machine/directory.h"

namespace gantry::vmm {

/// Of one `VmmOptions::directory`. Thread: any. Blocks: on files.
class TemplateStore {
 public:
  explicit TemplateStore(const std::string& directory) : folder_(directory + "/templates") {}

  /// Where they lie, and the directory above, which VMs' users pass. Again: nothing.
  Status MakeFolder() const;
  /// The directory of that template; none: there is none.
  std::optional<std::string> Find(const std::string& key) const;

  /// As long as it is kept nobody else, of other engines neither, makes or removes templates.
  /// Errors: kAborted: somebody does.
  Result<UniqueFd> Lock() const;

  /// All with the lock. An empty one of at most `bytes`, whose state `user` may write.
  Result<std::string> Begin(const std::string& key, uint64_t bytes, const MachineUser& user) const;
  /// It can be found from now on, and nobody may change it. Nothing writes to it any more.
  Status Finish(const std::string& key) const;
  /// Again: nothing. VMs that were restored from it do without.
  Status Remove(const std::string& key) const;
  /// All that are of none of these keys.
  Status RemoveOthers(const std::vector<std::string>& keys) const;

  const std::string& folder() const { return folder_; }

 private:
  std::string PathOf(const std::string& key) const;

  const std::string folder_;
};

}  // namespace gantry::vmm
