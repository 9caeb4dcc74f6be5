// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/state.h"

#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::keeper::state {
namespace {

/// So that nothing else is taken for a state.
constexpr std::string_view kMagic = "gantry-keeper state\n";

}  // namespace

std::vector<int> DescriptorsOf(const Keeper& keeper) {
  std::vector<int> fds = {keeper.alive, keeper.control.listener};
  for (const Listener& listener : keeper.front_door.listeners) {
    fds.push_back(listener.fd);
  }
  for (const Connection& connection : keeper.front_door.connections) {
    fds.push_back(connection.fd);
  }
  for (const Stored& stored : keeper.stored) {
    fds.push_back(stored.fd);
  }
  for (const int32_t client : keeper.control.clients) {
    fds.push_back(client);
  }
  if (keeper.control.asker) {
    fds.push_back(*keeper.control.asker);
  }
  if (const auto& engine = keeper.supervisor.engine) {
    fds.push_back(engine->pidfd);
    fds.push_back(engine->link);
  }
  return fds;
}

Result<UniqueFd> Write(const Keeper& keeper) {
  GANTRY_TRY(UniqueFd memfd, CreateMemfd("gantry-keeper-state"));
  GANTRY_CHECK_OK(WriteAt(memfd.get(), 0, std::string(kMagic) + EncodeProto(keeper)));
  return memfd;
}

Result<Keeper> Read(int memfd) {
  GANTRY_TRY(const uint64_t size, FileSize(memfd));
  GANTRY_TRY(const std::string bytes, ReadAt(memfd, 0, size));
  if (!bytes.starts_with(kMagic)) {
    return Fail(Code::kInvalidArgument, "read the keeper's state: it is none");
  }
  GANTRY_TRY(Keeper keeper, DecodeProto<Keeper>(std::string_view(bytes).substr(kMagic.size())));
  if (keeper.schema == 0 || keeper.schema > kSchema) {
    return Fail(Code::kFailedPrecondition,
                "read the keeper's state: its schema is {}, and this program knows those up to {}; "
                "take a later gantry-keeper",
                keeper.schema, kSchema);
  }
  return keeper;
}

}  // namespace gantry::keeper::state
