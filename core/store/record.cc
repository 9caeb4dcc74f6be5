// SPDX-License-Identifier: Apache-2.0
//
// The file of a record. Its bytes are made and read in record_bytes.cc.
#include "core/store/record.h"

#include <utility>

#include <gantry/toolkit/files/files.h>

namespace gantry::store {

std::string_view StateName(State state) {
  switch (state) {
    case State::kNone:
      return "none";
    case State::kCreating:
      return "creating";
    case State::kCreated:
      return "created";
    case State::kStarting:
      return "starting";
    case State::kRunning:
      return "running";
    case State::kPaused:
      return "paused";
    case State::kStopped:
      return "stopped";
    case State::kDeleting:
      return "deleting";
  }
  return "unknown";
}

std::string PathOf(std::string_view bundle) {
  return std::string(bundle).append("/").append(kFileName);
}

Result<Record> Read(const std::string& bundle) {
  const std::string path = PathOf(bundle);
  GANTRY_TRY(const std::string bytes, ReadFile(path, kMaxRecordBytes));
  auto record = Decode(bytes);
  if (!record) {
    return std::unexpected(std::move(record).error().Within("read '" + path + "'"));
  }
  return record;
}

Status Write(const Record& record, size_t most) {
  const std::string path = PathOf(record.bundle);
  const std::string bytes = Encode(record);
  if (bytes.size() > most) {
    return Fail(Code::kResourceExhausted,
                "write '{}': {} bytes, {} execs among them; {} are read again", path, bytes.size(),
                record.execs.size(), most);
  }
  return ReplaceFile(path, bytes, 0600);
}

Status Remove(const std::string& bundle) { return RemoveFile(PathOf(bundle)); }

void RemoveUnfinished(const std::string& bundle) {
  IgnoreError(gantry::RemoveUnfinished(PathOf(bundle)), "containerd removes the bundle in the end");
}

}  // namespace gantry::store
