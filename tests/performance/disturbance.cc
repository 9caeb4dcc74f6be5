// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/disturbance.h"

#include <signal.h>

#include <cerrno>
#include <chrono>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/link/channel.h"

namespace gantry::bench {
namespace {

constexpr std::chrono::seconds kLimit{30};

template <class Answer, class Question>
Result<Answer> AskKeeper(const Lab& lab, const Question& question) {
  GANTRY_TRY(UniqueFd socket, ConnectUnix(lab.run_dir() + "/keeper.sock"));
  link::BlockingChannel channel(std::move(socket));
  return channel.Ask<Answer>(question, std::chrono::steady_clock::now() + kLimit);
}

Status KillEngine(const Lab& lab) {
  GANTRY_TRY(const auto status, AskKeeper<link::KeeperStatus>(lab, link::Query()));
  if (status.engine_pid <= 0 ||
      status.engine_state != static_cast<uint32_t>(link::EngineState::kUp)) {
    return Fail(Code::kUnavailable, "kill the engine: none is in charge");
  }
  if (kill(status.engine_pid, SIGKILL) != 0) {
    return FailErrno(errno, "kill engine {}", status.engine_pid);
  }
  return {};
}

}  // namespace

Status Disturb(const Lab& lab, Disturbance what) {
  switch (what) {
    case Disturbance::kNone:
      break;
    case Disturbance::kCrash:
      return KillEngine(lab);
    case Disturbance::kUpgrade:
      GANTRY_CHECK_OK(AskKeeper<link::Upgraded>(lab, link::Upgrade()));
      break;
    case Disturbance::kKeeper:
      GANTRY_CHECK_OK(AskKeeper<link::KeeperUpgraded>(
          lab, link::UpgradeKeeper{lab.programs() + "/gantry-keeper"}));
      break;
  }
  return {};
}

}  // namespace gantry::bench
