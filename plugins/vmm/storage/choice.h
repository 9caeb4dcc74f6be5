// SPDX-License-Identifier: Apache-2.0
//
// How a guest is to get a mount of config.json, or why it cannot.
#pragma once

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/vmm/storage/source.h"

namespace gantry::vmm {

enum class Way {
  /// The guest's kernel has it itself, as it is written: proc, tmpfs.
  kGuests,
  /// Bound below the shared directory.
  kShared,
  /// Memory of the guest's that the pod's containers share, in place of the node's: /dev/shm.
  kMemory,
  /// The same with huge pages.
  kHugePages,
  /// A block device with a file system, which the guest mounts.
  kDisk,
};

/// Of a mount's options what is to be known on the host.
struct BindWords {
  bool bind = false;
  bool recursive = false;
  bool read_only = false;
  /// Mounts that the node makes below it later are to be seen, too.
  bool follows = false;
  /// And the other way round.
  bool tells = false;
};

BindWords ReadBindWords(const oci::SpecMount& mount);

/// The mount is of the node's files: what is at its source is to be looked at. Errors:
/// kFailedPrecondition, naming the type: neither that, nor one that the guest has.
Result<bool> NeedsSource(const oci::SpecMount& mount);

/// `source`: of one that needs it. Errors: kFailedPrecondition: what a guest cannot be given, and
/// what to do instead. They do not name the mount.
Result<Way> ChooseWay(const oci::SpecMount& mount, const Source& source);

/// A guest that sees no files of the node's is given what this one has in it, once: it is read-only
/// for the container, or one of those that every pod has, where what is written is nobody's.
bool IsCopied(const oci::SpecMount& mount, const Source& source);

/// The volume is the pod's own, and nobody else's: its containers share it even where one of them
/// may not write.
bool IsPods(const Source& source);

}  // namespace gantry::vmm
