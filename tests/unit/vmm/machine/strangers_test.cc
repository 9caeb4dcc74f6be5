// SPDX-License-Identifier: Apache-2.0
//
// Who else than its agent dials a machine's control port: any process of its guest may.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/machine/machine.h"
#include "tests/unit/vmm/machine/machine_rig.h"

namespace gantry::vmm {
namespace {

class MachineStrangers : public MachineRig {};

Result<std::string> PauseIn(Machine& machine) {
  return machine.Ask(protocol::Kind::kPause, EncodeProto(protocol::Pause{.container = "c"}),
                     Soon());
}

// Nobody waits for them: one after the other they would have a worker for minutes, while the agent
// is behind them in the queue.
TEST_F(MachineStrangers, ThatDialAndSayNothingHoldUpNobody) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  std::vector<UniqueFd> silent;
  for (size_t i = 1; i <= 3; ++i) {
    for (int each = 0; each < 60; ++each) {
      if (auto dialled = ConnectUnix(sandbox() + "/vm/s/v_1025")) {
        silent.push_back(std::move(*dialled));
      }
    }
    agent_->Hangup(true);
    WaitForReconnects(i);
    EXPECT_TRUE(PauseIn(**machine));
  }
  EXPECT_GT(silent.size(), 100U) << "each of them would have a worker for a second";
  EXPECT_EQ((*machine)->ended(), std::nullopt);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gantry::vmm
