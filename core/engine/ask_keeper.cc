// SPDX-License-Identifier: Apache-2.0
#include "core/engine/ask_keeper.h"

#include <chrono>
#include <utility>

#include "core/link/channel.h"
#include "core/link/control_messages.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"

namespace gantry::engine {
namespace {

constexpr std::chrono::milliseconds kKeeperWait(500);

}  // namespace

Result<link::KeeperStatus> AskKeeper(const std::string& run_dir) {
  GANTRY_TRY(UniqueFd socket, link::ConnectIn(run_dir, link::kControlSocket));
  link::BlockingChannel channel(std::move(socket));
  return channel.Ask<link::KeeperStatus>(link::Query{.brief = true},
                                         std::chrono::steady_clock::now() + kKeeperWait);
}

}  // namespace gantry::engine
