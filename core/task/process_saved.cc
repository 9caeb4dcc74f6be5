// SPDX-License-Identifier: Apache-2.0
//
// What a backend keeps of one process, in its container's record.
#include <functional>
#include <string>
#include <utility>

#include <gantry/format.h>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/task/contexts.h"

namespace gantry::task {
namespace {

/// What the states write later has room then, too.
constexpr size_t kMostRecord = store::kMaxRecordBytes - store::kSpareRecordBytes;

}  // namespace

Status ProcessContextImpl::Save(std::string blob) {
  if (blob.size() > kMaxSavedOfProcess) {
    return Fail(Code::kInvalidArgument, "save the state of '{}': {} bytes, {} are allowed", Name(),
                blob.size(), kMaxSavedOfProcess);
  }
  std::string before;
  auto write = async::Call(parts_.services.loop, [&]() -> Result<std::function<Status()>> {
    const TaskProcessPtr self = process_.lock();
    if (!self) {
      return Late("Save");
    }
    before = self->saved;
    self->SetSaved(blob);
    RecordFile& record = self->container.record;
    return record.Writer(record.Next(ToRecord(self->container), kMostRecord));
  });
  if (!write) {
    return std::unexpected(std::move(write).error());
  }
  Status written = (*write)();
  if (written) {
    return {};
  }
  // A later write must not bring what was refused.
  async::Call(parts_.services.loop, [&] {
    const TaskProcessPtr self = process_.lock();
    if (self && self->saved == blob) {
      self->SetSaved(std::move(before));
    }
  });
  return std::unexpected(
      std::move(written).error().Within(Format("save the state of '{}'", Name())));
}

}  // namespace gantry::task
