// SPDX-License-Identifier: Apache-2.0
//
// What stands for a guest where none is booted: a network namespace with an interface for each of
// the VM's NICs, frames between the two, and the agent's own code, which sets it up.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/hypervisor/vm_config.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

class GuestSide {
 public:
  /// With the NICs' MACs, and names that nobody wants.
  explicit GuestSide(std::vector<Nic> nics);
  GuestSide(const GuestSide&) = delete;
  GuestSide& operator=(const GuestSide&) = delete;
  /// As where the VMM ends: its taps are closed.
  ~GuestSide();

  Status SetUp(const protocol::SetUp& request) const;

  const UniqueFd& netns() const { return netns_; }

 private:
  /// A NIC, and the interface that the guest sees.
  struct Cable {
    UniqueFd nic;
    UniqueFd interface;
  };

  void Carry(const Cable& cable) const;

  UniqueFd netns_;
  UniqueFd stop_;
  std::vector<std::unique_ptr<Cable>> cables_;
  std::vector<std::thread> threads_;
};

/// TCP from one namespace to an address in another one: what one side sends in whole is what the
/// other one gets, and the answer. Errors: what has failed.
Status Talk(const UniqueFd& from, const UniqueFd& to, const std::string& address);

}  // namespace gantry::vmm
