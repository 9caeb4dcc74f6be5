// SPDX-License-Identifier: Apache-2.0
#include "core/door/keeper.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "core/link/channel.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"
#include "core/shim/shim.h"

namespace gantry::door {
namespace {

constexpr std::chrono::seconds kLimit(10);
constexpr std::string_view kUnixScheme = "unix://";

}  // namespace

Result<std::string> AnnounceInstance(const std::string& run_dir, const link::Announce& instance) {
  Result<UniqueFd> socket = link::ConnectIn(run_dir, link::kControlSocket);
  if (!socket) {
    return Fail(Code::kUnavailable, "reach the keeper in '{}': {}", run_dir,
                socket.error().message);
  }
  link::BlockingChannel channel(std::move(*socket));
  GANTRY_TRY(link::Announced announced,
             channel.Ask<link::Announced>(instance, std::chrono::steady_clock::now() + kLimit));
  if (!announced.address.starts_with(kUnixScheme)) {
    return Fail(Code::kInternal, "announce '{}': the keeper says the address '{}'", instance.id,
                announced.address);
  }
  return announced.address.substr(kUnixScheme.size());
}

Status DeleteInstance(const std::string& run_dir, const link::Announce& instance) {
  shim::Arguments arguments;
  arguments.ns = instance.ns;
  arguments.id = instance.id;
  arguments.address = instance.grpc_address;
  arguments.bundle = instance.bundle;
  shim::Surroundings around;
  around.run_dir = run_dir;
  GANTRY_TRY([[maybe_unused]] const std::string ended, shim::Delete(arguments, around));
  return {};
}

}  // namespace gantry::door
