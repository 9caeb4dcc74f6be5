// SPDX-License-Identifier: Apache-2.0
//
// How a record is written, removed and forgotten: the same for containers and pods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <gantry/error.h>
#include <gantry/process.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/log/log.h"
#include "core/task/record_file.h"

namespace gantry::backend {
struct Services;
}  // namespace gantry::backend

namespace gantry::link {
struct Forget;
}  // namespace gantry::link

namespace gantry::task {

/// Writes go on behalf of `account` and are never refused. Returns when that version, or a later
/// one, is on disk. Errors: of `store::Write`. Thread: loop.
async::Task<Status> WriteRecord(const backend::Services& services, async::AccountPtr account,
                                RecordFile file, RecordVersion version);
/// At which level the log says that a record was not written, which `error` is about: containerd
/// may have deleted the bundle, and with it the record, while it was written.
log::Level LevelOfUnwritten(const Error& error);
/// It goes for good. `bundle`: empty where there has never been one. Thread: loop.
async::Task<void> RemoveRecord(const backend::Services& services, async::AccountPtr account,
                               RecordFile file, std::string bundle);
/// What the keeper is to answer to `delete` of that instance. Without `exit`: that it has ended
/// now, with 0.
link::Forget Tombstone(uint64_t instance, uint32_t pid, const std::optional<ExitStatus>& exit);

}  // namespace gantry::task
