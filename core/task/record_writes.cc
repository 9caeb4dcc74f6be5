// SPDX-License-Identifier: Apache-2.0
#include "core/task/record_writes.h"

#include <cerrno>
#include <utility>

#include "core/async/worker_pool.h"
#include "core/backend/services.h"
#include "core/link/messages.h"
#include "core/task/container.h"

namespace gantry::task {

async::Task<Status> WriteRecord(const backend::Services& services, async::AccountPtr account,
                                RecordFile file, RecordVersion version) {
  co_return co_await services.pool.RunFor(std::move(account), file.Writer(std::move(version)),
                                          async::Refusable::kNo);
}

log::Level LevelOfUnwritten(const Error& error) {
  return error.sys_errno == ENOENT ? log::Level::kInfo : log::Level::kError;
}

async::Task<void> RemoveRecord(const backend::Services& services, async::AccountPtr account,
                               RecordFile file, std::string bundle) {
  if (bundle.empty()) {
    co_return;  // There has never been one.
  }
  IgnoreError(co_await services.pool.RunFor(std::move(account), file.Remover(std::move(bundle)),
                                            async::Refusable::kNo),
              "containerd removes the bundle, and with it the record");
}

link::Forget Tombstone(uint64_t instance, uint32_t pid, const std::optional<ExitStatus>& exit) {
  const ExitStatus told = exit.value_or(ExitStatus{0, NowNs()});
  link::Forget tombstone;
  tombstone.instance = instance;
  tombstone.pid = pid;
  tombstone.status = told.status;
  tombstone.exited_at_ns = told.exited_at_ns;
  return tombstone;
}

}  // namespace gantry::task
