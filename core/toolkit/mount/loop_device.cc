// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <gantry/toolkit/mount/loop_device.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::mount {
namespace {

// A free number may be taken by another process before we have configured it.
constexpr int kTries = 100;
constexpr Backoff::Terms kTaken{
    .no_event = "LOOP_CONFIGURE: EBUSY tells only that another process was sooner",
    .first = std::chrono::microseconds(10),
    .longest = std::chrono::milliseconds(8)};

loop_config ConfigFor(const std::string& image, int image_fd, bool read_only, bool direct_io) {
  loop_config config{};
  config.fd = static_cast<__u32>(image_fd);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  if (read_only) {
    config.info.lo_flags |= LO_FLAGS_READ_ONLY;
  }
  if (direct_io) {
    config.info.lo_flags |= LO_FLAGS_DIRECT_IO;
  }
  // For losetup(8) only; the rest of the name is cut off.
  image.copy(reinterpret_cast<char*>(config.info.lo_file_name), LO_NAME_SIZE - 1);
  return config;
}

}  // namespace

Result<LoopDevice> AttachLoopDevice(const std::string& image, bool read_only, bool direct_io) {
  const int access = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) {
    return FailErrno(errno, "open '/dev/loop-control'");
  }
  const UniqueFd file(open(image.c_str(), access));
  if (!file) {
    return FailErrno(errno, "open image '{}'", image);
  }
  const loop_config config = ConfigFor(image, file.get(), read_only, direct_io);
  Backoff backoff(kTaken);
  for (int i = 0; i < kTries; ++i) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) {
      return FailErrno(errno, "find a loop device for '{}'", image);
    }
    LoopDevice device{.path = "/dev/loop" + std::to_string(number), .fd = UniqueFd()};
    device.fd.reset(open(device.path.c_str(), access));
    if (!device.fd) {
      return FailErrno(errno, "open '{}'", device.path);
    }
    if (ioctl(device.fd.get(), LOOP_CONFIGURE, &config) == 0) {
      return device;
    }
    if (errno != EBUSY && errno != EAGAIN) {
      return FailErrno(errno, "attach '{}' to '{}'", image, device.path);
    }
    backoff.Sleep(Deadline::max());
  }
  return Fail(Code::kUnavailable, "attach '{}' to a loop device: others took each free one", image);
}

}  // namespace gantry::mount
