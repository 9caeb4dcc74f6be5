// SPDX-License-Identifier: Apache-2.0
//
// Source: Linux, lib/kobject_uevent.c; drivers/block/virtio_blk.c (serial_show).
#include "plugins/vmm/guest/devices.h"

#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/guest/bus.h"

namespace gantry::vmm::guest {
namespace {

/// VIRTIO_BLK_ID_BYTES.
constexpr size_t kSerialBytes = 20;

std::string_view Trimmed(std::string_view text) {
  const size_t end = text.find_last_not_of(" \n");
  const size_t begin = text.find_first_not_of(' ');
  return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

}  // namespace

Result<DeviceEvents> DeviceEvents::Listen() {
  UniqueFd socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailErrno(errno, "listen to what the kernel says of devices");
  }
  return DeviceEvents(std::move(socket));
}

void DeviceEvents::Drain() {
  std::array<char, 8192> text{};
  // ENOBUFS: there were more than it keeps, and who looks now sees them all.
  while (::recv(socket_.get(), text.data(), text.size(), 0) >= 0 || errno == ENOBUFS ||
         errno == EINTR) {
  }
}

bool DeviceEvents::Await(Deadline deadline) {
  for (;;) {
    pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&one, 1, PollTimeout(deadline));
    if (ready >= 0 || errno != EINTR) {
      Drain();
      return ready > 0;
    }
  }
}

Result<std::string> FindDisk(const std::string& serial, const std::string& sys_block) {
  GANTRY_TRY(const auto names, ListDirectory(sys_block));
  const std::string_view wanted = std::string_view(serial).substr(0, kSerialBytes);
  for (const std::string& name : names) {
    const auto text = ReadFile(Format("{}/{}/serial", sys_block, name), 256);
    if (text && Trimmed(*text) == wanted) {
      return "/dev/" + name;
    }
  }
  return Fail(Code::kNotFound, "find the disk with serial '{}': there is none",
              serial.substr(0, 64));
}

Result<std::string> AwaitDisk(const std::string& serial, Deadline deadline) {
  GANTRY_TRY(DeviceEvents events, DeviceEvents::Listen());
  bool looks = IsBusSilent();
  for (;;) {
    auto found = FindDisk(serial, "/sys/block");
    if (found && Exists(*found)) {
      return found;
    }
    if (std::exchange(looks, false)) {
      RescanBus();
      continue;
    }
    if (!events.Await(deadline)) {
      return Fail(Code::kDeadlineExceeded, "wait for the disk with serial '{}': it has not come",
                  serial.substr(0, 64));
    }
  }
}

}  // namespace gantry::vmm::guest
