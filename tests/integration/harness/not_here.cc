// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/harness/not_here.h"

#include <gtest/gtest.h>

namespace gantry::e2e {
namespace {

struct NotHere {
  const char* suite;
  const char* test;
  const char* reason;
};

constexpr const char* kSandboxPid = "the pid that containerd sees is the sandbox's";
constexpr const char* kNoOciBinary = "the remote backend runs no OCI binary";
constexpr const char* kNoMemoryLimit = "the fake sandbox measures memory, it does not limit it";
constexpr const char* kOwnNamespaces = "the fake sandbox has no namespaces that containers share";

// Of the fake remote backend.
constexpr NotHere kNotRemote[] = {
    {"BadInput", "OfAnOciBinaryIsNamed", kNoOciBinary},
    {"BadInput", "ThatHangsIsKilledAtTheHandlersLimit", kNoOciBinary},
    {"BadInput", "ThatHangsIsKilledAtTheCallersDeadline", kNoOciBinary},
    {"CtrRun", "RunsDetachedAndIsRemovedLater", kSandboxPid},
    {"CtrTask", "ShowsTheProcessesOfAContainer", kSandboxPid},
    {"CtrTask", "IsEndedBeyondItsMemoryLimit", kNoMemoryLimit},
    {"CtrEvents", "TellOfMemoryBeforeTheEnd", kNoMemoryLimit},
    {"EngineKill", "StillTellsOfMemory", kNoMemoryLimit},
    {"CtrRestart", "KeepsTheExitCodeOfAContainerThatEndedMeanwhile", kSandboxPid},
    {"EngineKill", "WithContainerdDownTooKeepsTheExitCode", kSandboxPid},
    {"CriPod", "KeepsTheExitCodeOfWhatEndedWithoutContainerd", kSandboxPid},
    {"CriPod", "SharesItsHostNameAndIpc", kOwnNamespaces},
    {"CriPod", "ChangesAMemoryLimit", kNoMemoryLimit},
    {"CriPod", "TellsThatMemoryRanOut", kNoMemoryLimit},
};

}  // namespace

std::string WhyNotHere(const Settings& settings) {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  for (const NotHere& row : kNotRemote) {
    if (settings.remote() && test.test_suite_name() == std::string(row.suite) &&
        test.name() == std::string(row.test)) {
      return row.reason;
    }
  }
  return "";
}

}  // namespace gantry::e2e
