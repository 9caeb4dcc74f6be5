// SPDX-License-Identifier: Apache-2.0
#include "core/link/record_peek.h"

namespace gantry::link {

Result<RecordPeek> PeekRecord(std::string_view record) {
  ProtoReader in(record);
  while (in.Next()) {
    if (in.field() == kPeekField && in.is_bytes()) {
      return DecodeProto<RecordPeek>(in.bytes());
    }
  }
  if (!in.ok()) {
    return Fail(Code::kInvalidArgument, "read the record: malformed");
  }
  return Fail(Code::kNotFound, "read the record: no process is named in it");
}

}  // namespace gantry::link
