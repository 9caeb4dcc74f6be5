// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/spawn_builder.h>

namespace gantry {

int SpawnBuilder::Pass(UniqueFd fd) {
  const int number = kFirst + static_cast<int>(fds_.size());
  fds_.emplace_back(std::move(fd), number);
  return number;
}

void SpawnBuilder::AddFd(std::string_view flag, UniqueFd fd) {
  const int number = Pass(std::move(fd));
  arguments_.push_back(Format("--{}={}", flag, number));
}

Result<SpawnRequest> SpawnBuilder::Finish(std::string name, const UniqueFd& program) {
  SpawnRequest request;
  GANTRY_TRY(request.program, program.Duplicate());
  request.argv = std::move(arguments_);
  request.argv.insert(request.argv.begin(), std::move(name));
  request.fds = std::move(fds_);
  return request;
}

}  // namespace gantry
