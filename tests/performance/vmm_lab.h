// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of virtual machines are measured: gantry's vmm backend, and one machine with a
// container that may do in it what it likes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/performance/bundle.h"
#include "tests/performance/instance.h"
#include "tests/performance/lab.h"

namespace gantry::bench {

/// What the rows need and is not there; empty: nothing.
std::string WithoutVmm(const Lab& lab);

/// gantry with its vmm backend.
Side VmmSide(const Lab& lab);

/// A container of the pod whose sandbox container has this id; of a new one where that is its own.
/// Source: containerd 2.3, internal/cri/annotations.
Instance::SpecChange InPod(const std::string& pod, bool is_sandbox);

/// A pod with a sandbox container and one for GuestTool, which is the guest's root. Thread: one.
class VmmGuest {
 public:
  /// `mounts`: members of the tools' `mounts`, with a comma behind each.
  static Result<std::unique_ptr<VmmGuest>> Boot(Lab& lab, const std::string& mounts = "");
  VmmGuest(const VmmGuest&) = delete;
  VmmGuest& operator=(const VmmGuest&) = delete;
  ~VmmGuest() = default;

  const std::string& pod() const { return sandbox_.id(); }

  Lab& lab() { return lab_; }

  Instance& tools() { return tools_; }

  /// A process in the tools' container that has begun, and what it says.
  struct Process {
    std::string id;
    Stdio stdio;
  };

  Result<std::unique_ptr<Process>> Begin(const std::vector<std::string>& argv);
  Status Finish(const Process& process);
  /// Its first line, once it has ended. Errors: kInternal: it did not end well.
  Result<std::string> Say(const std::vector<std::string>& argv);
  /// The same as numbers.
  Result<std::vector<double>> SayNumbers(const std::vector<std::string>& argv);

  /// Listens for the guest on a port of the host's. It is nonblocking.
  Result<UniqueFd> Listen(uint32_t port) const;

  Status End();

 private:
  explicit VmmGuest(Lab& lab);

  Lab& lab_;
  Instance sandbox_;
  Instance tools_;
  int count_ = 0;
};

}  // namespace gantry::bench
