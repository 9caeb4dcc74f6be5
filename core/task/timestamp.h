// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/gantry/wire.pb.h"

namespace gantry::task {

/// `containerd.runc.v1`'s Timestamp.
inline void SetTimestamp(wire::Timestamp* to, int64_t since_epoch_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  to->set_seconds(since_epoch_ns / kSecond);
  to->set_nanos(static_cast<int32_t>(since_epoch_ns % kSecond));
}

}  // namespace gantry::task
