// SPDX-License-Identifier: Apache-2.0
//
// Devices that come while the guest runs. The kernel tells that one has come; what it is is looked
// up in /sys then, each time from the beginning.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::guest {

/// What the kernel says of devices, in `sysfs` and /dev by then. Thread: one.
class DeviceEvents {
 public:
  /// From here on nothing is missed. Errors: the kernel's.
  static Result<DeviceEvents> Listen();

  int fd() const { return socket_.get(); }

  /// Takes what there is.
  void Drain();
  /// Waits for the next. False: none came until `deadline`.
  bool Await(Deadline deadline);

 private:
  explicit DeviceEvents(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

/// The path of the disk with that serial number, of which virtio has the first 20 bytes. Errors:
/// kDeadlineExceeded: there is none, and none came. Blocks: up to `deadline`.
Result<std::string> AwaitDisk(const std::string& serial, Deadline deadline);

/// The same among what is there, in a tree such as /sys/block. Errors: kNotFound.
Result<std::string> FindDisk(const std::string& serial, const std::string& sys_block);

}  // namespace gantry::vmm::guest
