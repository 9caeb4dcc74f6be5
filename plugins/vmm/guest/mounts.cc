// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/mounts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm::guest {
namespace {

constexpr const char* kScratch = "/run/gantry/scratch";
constexpr uint32_t kMaxWaitMs = 120'000;

Status AttachOne(const protocol::GuestMount& one, Deadline deadline) {
  GANTRY_TRY(const bool mounted, mount::IsMountPoint(one.target));
  if (mounted) {
    return {};
  }
  mount::Mount mount{.type = one.type, .source = one.source, .target = {}, .options = one.options};
  if (!one.serial.empty()) {
    GANTRY_TRY(mount.source, AwaitDisk(one.serial, deadline));
  }
  GANTRY_CHECK_OK(MakeDirectories(one.target));
  return mount::MountAll(one.target, {mount}, kScratch);
}

}  // namespace

Status MakeDirectories(const std::string& path) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "make directory '{}': not an absolute path", path);
  }
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      return FailErrno(errno, "make directory '{}'", part);
    }
    if (end == path.npos) {
      return {};
    }
  }
}

Status AttachMounts(const protocol::Attach& request) {
  const Deadline deadline = std::chrono::steady_clock::now() +
                            std::chrono::milliseconds(std::min(request.wait_ms, kMaxWaitMs));
  AwaitModules();
  for (size_t i = 0; i < request.mounts.size(); ++i) {
    const protocol::GuestMount& one = request.mounts[i];
    if (Status done = AttachOne(one, deadline); !done) {
      return std::unexpected(std::move(done).error().Within(
          Format("attach mount {} ('{}' on '{}')", i, one.type, one.target)));
    }
  }
  return {};
}

Status DetachMounts(const protocol::Detach& request) {
  for (const std::string& target : request.targets) {
    if (auto done = mount::UnmountTree(target); !done) {
      return std::unexpected(std::move(done).error().Within("detach"));
    }
  }
  return {};
}

}  // namespace gantry::vmm::guest
