// SPDX-License-Identifier: Apache-2.0
//
// What the agent does to the machine that it is the first process of; in tests, to none.
#pragma once

#include <cstdint>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm::guest {

/// Thread: one. `SetUp`, `Attach`, `Detach` and `Online` are called in a child process of the
/// agent's, with its namespaces, and may block.
class Platform {
 public:
  Platform() = default;
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;
  virtual ~Platform() = default;

  /// A stream socket to that port of the host, which does not block and may not be connected yet:
  /// it is writable when it is, or when that has failed (SO_ERROR). Errors: the kernel's.
  virtual Result<UniqueFd> Dial(uint32_t port) = 0;

  virtual Status SetUp(const protocol::SetUp& request) = 0;
  virtual Status Attach(const protocol::Attach& request) = 0;
  virtual Status Detach(const protocol::Detach& request) = 0;
  virtual Result<protocol::OnlineAnswer> Online(const protocol::Online& request) = 0;
  /// In a child: all is written to disks, and what can be unmounted is.
  virtual void Sync() = 0;
  /// The machine is off, and this does not return.
  virtual void PowerOff() = 0;
};

}  // namespace gantry::vmm::guest
