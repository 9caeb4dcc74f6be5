// SPDX-License-Identifier: Apache-2.0
//
// Which VM of a node has which user. VMMs that were broken into are strangers to each other by
// that. Whose a number is lies in a directory of links, `users`/NUMBER, each of which leads to the
// directory of the VM's sandbox: one whose sandbox is gone is free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <gantry/error.h>

#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// A user for the VM of the sandbox in `directory`, which is there; the same for each call. None:
/// the options have no users. Errors: kResourceExhausted: all are taken; those of the files.
/// Blocks: briefly, and while another one chooses. Thread: any.
Result<std::optional<uint32_t>> TakeUser(const VmmOptions& options, const std::string& directory);

/// The VM with that user is from now on that of the sandbox in `to`. Again: success. Errors:
/// kFailedPrecondition: it is not that of `from`; those of the files. Blocks, thread: as above.
Status GiveUser(const VmmOptions& options, const std::string& from, const std::string& to,
                uint32_t user);

/// Nothing runs as that user any more. Again: nothing.
void FreeUser(const VmmOptions& options, const std::string& directory, uint32_t user);

}  // namespace gantry::vmm
