// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/pod_record.h"

namespace gantry::vmm {

Result<PodRecord> ReadPodRecord(const std::string& bytes) {
  auto record = DecodeProto<PodRecord>(bytes);
  if (!record) {
    return Fail(Code::kDataLoss, "read the state of a sandbox: {}", record.error().message);
  }
  return record;
}

}  // namespace gantry::vmm
