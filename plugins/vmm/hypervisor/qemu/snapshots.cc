// SPDX-License-Identifier: Apache-2.0
//
// A snapshot is a migration to a file, a restored VM one that comes from it.
#include <fcntl.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/hypervisor/qemu/qemu_driver.h"

namespace gantry::vmm::qemu {
namespace {

constexpr const char* kState = "state";

std::string FileOf(const Snapshot& snapshot) { return snapshot.directory + "/state"; }

/// Both are set each time, since QEMU keeps them. `events`: it tells how far it is.
Json Capabilities(const Snapshot& snapshot) {
  const bool stays = snapshot.memory == Snapshot::Memory::kInItsFile;
  return {{"capabilities",
           {{{"capability", "events"}, {"state", true}},
            {{"capability", "x-ignore-shared"}, {"state", stays}},
            {{"capability", "mapped-ram"}, {"state", !stays}}}}};
}

std::string StatusIn(const QmpEvent& event) {
  const auto status = event.data.find("status");
  return status != event.data.end() && status->is_string() ? status->get<std::string>()
                                                           : std::string();
}

bool IsEnd(const QmpEvent& event) {
  const std::string status = StatusIn(event);
  return event.name == "MIGRATION" &&
         (status == "completed" || status == "failed" || status == "cancelled");
}

}  // namespace

Status Driver::Migrate(std::string_view command, const Snapshot& snapshot, const std::string& file,
                       Deadline deadline) {
  GANTRY_CHECK_OK(Do("migrate-set-capabilities", Capabilities(snapshot), deadline));
  qmp_.Forget([](const QmpEvent& event) { return event.name == "MIGRATION"; });
  GANTRY_CHECK_OK(Do(command, {{"uri", "file:" + file}}, deadline));
  GANTRY_TRY(const QmpEvent end,
             qmp_.Await(Format("the end of QEMU's '{}'", command), IsEnd, deadline));
  if (StatusIn(end) == "completed") {
    return {};
  }
  GANTRY_TRY(const Json told, qmp_.Execute("query-migrate", Json(), deadline));
  const auto why = told.is_object() ? told.find("error-desc") : told.end();
  return Fail(Code::kInternal, "ask QEMU to '{}' with '{}': it {}: {}", command, FileOf(snapshot),
              StatusIn(end),
              told.is_object() && why != told.end() && why->is_string() ? why->get<std::string>()
                                                                        : "it does not say why");
}

Status Driver::TakeSnapshot(const Snapshot& snapshot, Deadline deadline) {
  if (snapshot.memory == Snapshot::Memory::kInItsFile) {
    if (config_.memory.backing != MemoryBacking::kFile) {
      return Fail(Code::kFailedPrecondition,
                  "take a snapshot of a VM of QEMU without its memory: that is in no file");
    }
    GANTRY_TRY(const uint64_t more, MoreMemory("size", deadline));
    if (more != 0) {
      return Fail(Code::kFailedPrecondition,
                  "take a snapshot of a VM of QEMU without its memory: {} bytes were added, which "
                  "are in no file",
                  more);
    }
  }
  return Migrate("migrate", snapshot, FileOf(snapshot), deadline);
}

Status Driver::Restore(Deadline deadline) {
  if (!config_.from) {
    return Fail(Code::kFailedPrecondition, "restore a VM of QEMU: it was made without a snapshot");
  }
  std::string file = FileOf(*config_.from);
  if (options_.opens_disks_for_it) {
    const UniqueFd state(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!state) {
      return FailErrno(errno, "open '{}' for QEMU", file);
    }
    GANTRY_TRY(file, GiveFile(kState, state, deadline));
  }
  GANTRY_CHECK_OK(Migrate("migrate-incoming", *config_.from, file, deadline));
  if (options_.opens_disks_for_it) {
    GANTRY_CHECK_OK(DropFdSets(kState, deadline));
  }
  return AddAfterRestore(deadline);
}

Status Driver::AddAfterRestore(Deadline deadline) {
  for (const FileSystem& one : config_.file_systems) {
    GANTRY_CHECK_OK(AddFileSystem(one, deadline));
  }
  return config_.vsock ? AddVsock(*config_.vsock, deadline) : Status();
}

}  // namespace gantry::vmm::qemu
