// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/modules.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ranges>
#include <string_view>

#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::guest {
namespace {

constexpr size_t kMaxList = size_t{64} << 10;
/// Held by the child: an open file is one for both, so its lock ends with the last that has it.
constexpr const char* kLock = "/run/gantry/modules";

Status LoadModule(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return FailErrno(errno, "open module '{}'", path);
  }
  if (::syscall(SYS_finit_module, file.get(), "", 0) != 0 && errno != EEXIST && errno != ENODEV) {
    return FailErrno(errno, "load module '{}'", path);
  }
  return {};
}

}  // namespace

Status LoadModules(const std::string& list) {
  GANTRY_TRY(const std::string text, ReadFile(list, kMaxList));
  const std::string folder = list.substr(0, list.rfind('/') + 1);
  Status first;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string name{std::string_view(part)};
    if (name.empty()) {
      continue;
    }
    Status loaded = LoadModule(folder + name);
    if (!loaded && first) {
      first = std::move(loaded);
    }
  }
  return first;
}

Status LoadModulesInChild(const std::string& list) {
  const UniqueFd lock(::open(kLock, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
    return FailErrno(errno, "lock '{}'", kLock);
  }
  const pid_t child = ::fork();
  if (child < 0) {
    return FailErrno(errno, "make a child to load modules");
  }
  if (child == 0) {
    if (const Status loaded = LoadModules(list); !loaded) {
      std::fprintf(stderr, "gantry-agent: %s\n", loaded.error().message.c_str());
    }
    // What a template is made of waits for this line.
    std::fprintf(stderr, "gantry-agent: ready\n");
    ::_exit(0);
  }
  return {};
}

void AwaitModules() {
  const UniqueFd lock(::open(kLock, O_RDONLY | O_CLOEXEC));
  while (lock && ::flock(lock.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
}

}  // namespace gantry::vmm::guest
