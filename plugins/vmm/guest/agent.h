// SPDX-License-Identifier: Apache-2.0
//
// The guest agent: one loop, one thread, children for what may wait. What it is the first process
// of, and what it needs for that, is main.cc's and first.h's; this runs wherever it may make
// containers.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/hierarchy.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/containers.h"
#include "plugins/vmm/guest/control.h"
#include "plugins/vmm/guest/forwards.h"
#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/guest/platform.h"
#include "plugins/vmm/guest/workers.h"

namespace gantry::vmm::guest {

/// Thread: the only one of its process, which has no children of others.
class Agent {
 public:
  struct Setting {
    /// A folder that is there, for what is known of containers.
    std::string folder;
  };

  /// Blocks SIGCHLD, and ignores SIGPIPE. `platform`: outlives it. Errors: the kernel's;
  /// kNotFound: there are no cgroups.
  static Result<std::unique_ptr<Agent>> Make(Platform& platform, const Setting& setting);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() = default;

  /// Never returns but for an error of the kernel's, or the end of the machine.
  Status Run();

  /// One turn of its loop.
  Status Turn(std::chrono::milliseconds most) { return loop_->Turn(most); }

  /// A device has come: what waits for one tries again.
  void DeviceCame() { control_->Dial(); }

  Loop& loop() { return *loop_; }

 private:
  Agent(std::unique_ptr<Loop> loop, Platform& platform, cgroup::CgroupHierarchy hierarchy,
        const Setting& setting);

  Status WatchChildren();
  void OnCall(protocol::Kind kind, const std::string& body, const Control::Answer& answer);
  /// Of calls that are about containers, and that are about the machine. False: it is none of them.
  bool OnContainerCall(protocol::Kind kind, const std::string& body, const Control::Answer& answer);
  bool OnReportCall(protocol::Kind kind, const std::string& body, const Control::Answer& answer);
  bool OnMachineCall(protocol::Kind kind, const std::string& body, const Control::Answer& answer);
  void Shutdown(const Control::Answer& answer);
  void PowerOffWhenSaid();
  void Log(const std::string& line);

  std::unique_ptr<Loop> loop_;
  Platform& platform_;
  Workers workers_;
  std::unique_ptr<Control> control_;
  Containers containers_;
  Forwards forwards_;
  UniqueFd children_;
  Loop::Watch on_children_;
  int waited_turns_ = 0;
  uint64_t lost_lines_ = 0;
  bool shutting_down_ = false;
  bool is_set_up_ = false;
};

}  // namespace gantry::vmm::guest
