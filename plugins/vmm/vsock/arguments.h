// SPDX-License-Identifier: Apache-2.0
//
// The words of gantry-vsock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/vmm/vsock/stream_table.h"

namespace gantry::vmm::vsock {

struct Arguments {
  /// Descriptors: the sockets at which the front end and hosts connect, and the directory with the
  /// sockets that the guest dials, which becomes the program's root.
  int front_end = -1;
  int hosts = -1;
  int directory = -1;
  uint64_t guest_cid = 0;
  /// In that directory. The guest dials NAME_PORT.
  std::string name;
  size_t streams = kMaxStreams;
  bool reconnects = false;
};

const char* Usage();

/// Errors: kInvalidArgument, with the word that is wrong or missing.
Result<Arguments> ReadArguments(const std::vector<std::string>& words);

}  // namespace gantry::vmm::vsock
