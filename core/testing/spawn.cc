// SPDX-License-Identifier: Apache-2.0
#include "core/testing/spawn.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/format.h>

#include "core/os/interface_spawn.h"
#include "core/testing/children.h"

namespace gantry::fakes {
namespace {

/// The interpreter of a script opens it by its path: a descriptor is closed by then.
bool IsScript(const UniqueFd& program) {
  // Opened anew: it may have come with O_PATH.
  const UniqueFd file(
      open(Format("/proc/self/fd/{}", program.get()).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2> head{};
  return pread(file.get(), head.data(), head.size(), 0) == 2 && head[0] == '#' && head[1] == '!';
}

}  // namespace

std::string FileBehind(const UniqueFd& program) {
  std::error_code failed;
  return program ? std::filesystem::read_symlink(Format("/proc/self/fd/{}", program.get()), failed)
                       .string()
                 : std::string();
}

Result<std::shared_ptr<FakeHostProcess>> Spawn(const SpawnRequest& request) {
  GANTRY_TRY(os::InterfaceSpawn ready, os::OfInterface(request));
  if (request.program && IsScript(request.program)) {
    ready.request.executable = FileBehind(request.program);
    ready.request.program_fd.reset();
  }
  GANTRY_TRY(os::SpawnResult spawned, Children::Of().Spawn(ready.request));
  return std::make_shared<FakeHostProcess>(spawned.process, std::move(spawned.pidfd));
}

}  // namespace gantry::fakes
