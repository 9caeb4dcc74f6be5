// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/not_here.h"

#include <algorithm>
#include <span>
#include <string_view>

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
constexpr const char* kNoCheckpoint = "the fake sandbox saves nothing";
constexpr const char* kNoMemoryLimit = "the fake sandbox measures memory, it does not limit it";
constexpr const char* kNoHolder = "the fake sandbox's namespaces need nothing that holds them";
constexpr const char* kNoCgroup =
    "the fake sandbox's processes are in no cgroup of the container's";
constexpr const char* kOwnNamespaces = "the fake sandbox has no namespaces that containers share";

// Of the fake remote backend.
constexpr NotHere kNotRemote[] = {
    {"BadInput", "OfAnOciBinaryIsNamed", kNoOciBinary},
    {"BadInput", "ThatHangsIsKilledAtTheHandlersLimit", kNoOciBinary},
    {"BadInput", "ThatHangsIsKilledAtTheCallersDeadline", kNoOciBinary},
    {"CtrCheckpoint", "GoesOnWhereItWas", kNoCheckpoint},
    {"CtrCheckpoint", "GoesOnWithoutStreams", kNoCheckpoint},
    {"CtrCheckpoint", "SaysWhatCriuCouldNotSave", kNoCheckpoint},
    {"CtrCheckpoint", "SaysThatCriuIsNotThere", kNoCheckpoint},
    {"CriCheckpoint", "GoesOnInAnotherPod", kNoCheckpoint},
    {"CtrRun", "RunsDetachedAndIsRemovedLater", kSandboxPid},
    {"CtrTask", "ShowsTheProcessesOfAContainer", kSandboxPid},
    {"CtrKill", "EndsWhatItFrozeBelowItself", kSandboxPid},
    {"CtrTask", "IsEndedBeyondItsMemoryLimit", kNoMemoryLimit},
    {"CtrEvents", "TellOfMemoryBeforeTheEnd", kNoMemoryLimit},
    {"EngineKill", "StillTellsOfMemory", kNoMemoryLimit},
    {"KeeperKill", "EndsATerminalAndItsExecs", kNoCgroup},
    {"CtrRestart", "KeepsTheExitCodeOfAContainerThatEndedMeanwhile", kSandboxPid},
    {"EngineKill", "WithContainerdDownTooKeepsTheExitCode", kSandboxPid},
    {"CriPod", "KeepsTheExitCodeOfWhatEndedWithoutContainerd", kSandboxPid},
    {"CriPod", "SharesItsHostNameAndIpc", kOwnNamespaces},
    {"CriNamespaces", "HaveANameOfTheirOwn", kOwnNamespaces},
    {"CriNamespaces", "AskTheServersOfThePod", kOwnNamespaces},
    {"CriNamespaces", "ShareMemory", kOwnNamespaces},
    {"CriNamespaces", "HaveOneMountOfTheirMemory", kOwnNamespaces},
    {"CriNamespaces", "HaveTheirOwnSysctls", kOwnNamespaces},
    {"CriNamespaces", "SeeEachOthersProcessesWhenAsked", kOwnNamespaces},
    {"CriNamespaces", "AreTheNodesWhenAsked", kOwnNamespaces},
    {"CriEphemeral", "SeesTheProcessesOfItsTarget", kOwnNamespaces},
    {"CriEphemeral", "SeesTheFilesOfItsTarget", kOwnNamespaces},
    {"CriEphemeral", "OfSeveralSeesTheProcessesOfItsTarget", kOwnNamespaces},
    {"CriEphemeral", "EndsWithItsTarget", kOwnNamespaces},
    {"CriForward", "ReachesAPodWithItsOwnNetwork", kOwnNamespaces},
    {"CriForward", "KeepsTheSamePortOfTwoPodsApart", kOwnNamespaces},
    {"CriShimPod", "NeedsNoPauseContainer", kNoHolder},
    {"CriShimPod", "IsNotReadyWithoutItsHolder", kNoHolder},
    {"CriShimPod", "KeepsItsHolderOverTheEngine", kNoHolder},
    {"CriShimPod", "SharesItsPidNamespaceWithNobody", kNoHolder},
    {"CriShimPod", "ThatCannotBeLeavesNothing", kOwnNamespaces},
    {"CriInterrupt", "ContainerdDiesWhileAContainerEnds", kSandboxPid},
    {"CriNamespaces", "LetAnyUserReadTheirFiles", kOwnNamespaces},
    {"CriUserNamespace", "MapsRoot", kOwnNamespaces},
    {"CriResources", "OfTheKubeletsCgroupAreItsOwn", kNoMemoryLimit},
    {"CriResources", "OfThePodStopWhatIsWithinItsContainersLimits", kNoMemoryLimit},
    {"CriResources", "AreChangedWhileThePodRuns", kNoMemoryLimit},
    {"CriPod", "ChangesAMemoryLimit", kNoMemoryLimit},
    {"CriPod", "TellsThatMemoryRanOut", kNoMemoryLimit},
};

constexpr const char* kOwnSysctls = "a sentry takes no sysctls, and changes none of the node's";
constexpr const char* kOwnKernel =
    "a sentry is in none of the node's namespaces that a process sees";
constexpr const char* kOnePid = "the pid that containerd sees is the sentry's, of all containers";
constexpr const char* kNoTtyName =
    "tty(1) does not find a terminal of the host (google/gvisor #13535)";
constexpr const char* kOneMemory =
    "the memory of a pod's processes is its sentry's, and ends with it: see GvisorMemory";
constexpr const char* kGoferMount = "what a gofer serves is of no other type in /proc/mounts";
constexpr const char* kNoOciHandler = "the gvisor backend runs no OCI binary: see GvisorRefused";
constexpr const char* kNoCriu = "a sentry saves itself, without criu";
constexpr const char* kWholeSandbox =
    "CRI saves one container of a pod, a sentry all: see GvisorCheckpoint";

// Of gVisor.
constexpr NotHere kNotGvisor[] = {
    {"BadInput", "OfAnOciBinaryIsNamed", kNoOciHandler},
    {"BadInput", "ThatHangsIsKilledAtTheHandlersLimit", kNoOciHandler},
    {"BadInput", "ThatHangsIsKilledAtTheCallersDeadline", kNoOciHandler},
    {"CriCheckpoint", "GoesOnInAnotherPod", kWholeSandbox},
    {"CtrCheckpoint", "SaysWhatCriuCouldNotSave", kNoCriu},
    {"CtrCheckpoint", "SaysThatCriuIsNotThere", kNoCriu},
    {"CtrRun", "RunsDetachedAndIsRemovedLater", kOnePid},
    {"CtrTask", "ShowsTheProcessesOfAContainer", kOnePid},
    {"CtrKill", "EndsWhatItFrozeBelowItself", kOnePid},
    {"CriPod", "KeepsTheExitCodeOfWhatEndedWithoutContainerd", kOnePid},
    {"CriInterrupt", "ContainerdDiesWhileAContainerEnds", kOnePid},
    {"CriEphemeral", "OfSeveralSeesTheProcessesOfItsTarget", kOnePid},
    {"CriNamespaces", "HaveTheirOwnSysctls", kOwnSysctls},
    {"CriNamespaces", "AreTheNodesWhenAsked", kOwnKernel},
    {"CriNamespaces", "HaveOneMountOfTheirMemory", kGoferMount},
    {"CriPod", "TellsThatMemoryRanOut", kOneMemory},
    {"CriResources", "OfThePodStopWhatIsWithinItsContainersLimits", kOneMemory},
    {"CriShimPod", "SharesItsPidNamespaceWithNobody", kOwnKernel},
    {"CriShimPod", "ThatCannotBeLeavesNothing", kOwnSysctls},
    {"CtrTerminal", "IsATerminalInside", kNoTtyName},
};

constexpr const char* kNoOciRuntime = "the wasm backend runs no OCI runtime";
constexpr const char* kNothingToSave = "a guest cannot be saved";

// Of the wasm backend, whose native containers are made by gantry-init.
constexpr NotHere kNotWasm[] = {
    {"BadInput", "OfAnOciBinaryIsNamed", kNoOciRuntime},
    {"BadInput", "ThatHangsIsKilledAtTheHandlersLimit", kNoOciRuntime},
    {"BadInput", "ThatHangsIsKilledAtTheCallersDeadline", kNoOciRuntime},
    {"CriCheckpoint", "GoesOnInAnotherPod", kNothingToSave},
    {"CtrCheckpoint", "GoesOnWhereItWas", kNothingToSave},
    {"CtrCheckpoint", "GoesOnWithoutStreams", kNothingToSave},
    {"CtrCheckpoint", "SaysWhatCriuCouldNotSave", kNothingToSave},
    {"CtrCheckpoint", "SaysThatCriuIsNotThere", kNothingToSave},
};

constexpr const char* kOneMachine = "the pid that containerd sees is the VMM's, of all containers";
constexpr const char* kManyMachines =
    "without KVM so many machines do not boot within any limit: see VmmRestart";
constexpr const char* kOwnMachine = "the node's namespaces are no part of a virtual machine";
constexpr const char* kKernelsSysctls = "a pod's sysctls are its own kernel's, and all can be set";
constexpr const char* kSharesWithTheAgent =
    "a pod's shared pid namespace is its guest's, whose first process is the agent";
constexpr const char* kNoSnapshot = "the vmm backend refuses checkpoints by name: see VmmRefused";
constexpr const char* kNoOciProgram = "the vmm backend runs no OCI binary: see VmmRefused";

// Of the vmm backend.
constexpr NotHere kNotVmm[] = {
    {"BadInput", "OfAnOciBinaryIsNamed", kNoOciProgram},
    {"BadInput", "ThatHangsIsKilledAtTheHandlersLimit", kNoOciProgram},
    {"BadInput", "ThatHangsIsKilledAtTheCallersDeadline", kNoOciProgram},
    {"CriCheckpoint", "GoesOnInAnotherPod", kNoSnapshot},
    {"CtrCheckpoint", "GoesOnWhereItWas", kNoSnapshot},
    {"CtrCheckpoint", "GoesOnWithoutStreams", kNoSnapshot},
    {"CtrCheckpoint", "SaysWhatCriuCouldNotSave", kNoSnapshot},
    {"CtrCheckpoint", "SaysThatCriuIsNotThere", kNoSnapshot},
    {"CtrRun", "RunsDetachedAndIsRemovedLater", kOneMachine},
    {"CtrTask", "ShowsTheProcessesOfAContainer", kOneMachine},
    {"CtrKill", "EndsWhatItFrozeBelowItself", kOneMachine},
    {"CtrRestart", "KeepsTheExitCodeOfAContainerThatEndedMeanwhile", kOneMachine},
    {"EngineKill", "WithContainerdDownTooKeepsTheExitCode", kOneMachine},
    {"EngineKill", "KeepsTheExitCodeOfWhatEndsMeanwhile", kOneMachine},
    {"EngineKill", "DuringFiftyRunsLosesNoExitCode", kManyMachines},
    {"CriPod", "KeepsTheExitCodeOfWhatEndedWithoutContainerd", kOneMachine},
    {"CriInterrupt", "ContainerdDiesWhileAContainerEnds", kOneMachine},
    {"CriNamespaces", "AreTheNodesWhenAsked", kOwnMachine},
    {"CriShimPod", "SharesItsPidNamespaceWithNobody", kSharesWithTheAgent},
    {"CriShimPod", "ThatCannotBeLeavesNothing", kKernelsSysctls},
    {"CriForward", "ReachesAPodOnTheNodesNetwork", kOwnMachine},
    {"CriUserNamespace", "MapsRoot", kOwnMachine},
};

constexpr const char* kOwnVsock = "this hypervisor is its guests' vsock device itself";
constexpr const char* kNoVirtiofs =
    "Firecracker has no virtiofs, and refuses files of the node by name";

// Of hypervisors other than QEMU.
constexpr NotHere kNotHybrid[] = {
    {"VmmEnds", "OfTheVsockDeviceAreThoseOfItsContainers", kOwnVsock},
};

// Of Firecracker.
constexpr NotHere kNotFirecracker[] = {
    {"VmmEnds", "OfVirtiofsdAreThoseOfItsContainers", kNoVirtiofs},
    {"VmmPod", "SharesItsNetworkItsMemoryAndItsVolumes", kNoVirtiofs},
};

std::string Find(std::span<const NotHere> rows, std::string_view suite, std::string_view test) {
  const auto found = std::ranges::find_if(
      rows, [&](const NotHere& row) { return suite == row.suite && test == row.test; });
  return found == rows.end() ? "" : found->reason;
}

std::string FindVmm(const Settings& settings, std::string_view suite, std::string_view test) {
  std::string reason = Find(kNotVmm, suite, test);
  if (reason.empty() && settings.hypervisor != "qemu") {
    reason = Find(kNotHybrid, suite, test);
  }
  if (reason.empty() && settings.firecracker()) {
    reason = Find(kNotFirecracker, suite, test);
  }
  return reason;
}

}  // namespace

std::string WhyNotHere(const Settings& settings) {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  // Of a parametrised test: "Instance/Suite" and "Test/parameter".
  std::string_view suite = test.test_suite_name();
  suite.remove_prefix(suite.contains('/') ? suite.find('/') + 1 : 0);
  std::string_view name = test.name();
  name = name.substr(0, name.find('/'));
  if (settings.remote()) {
    return Find(kNotRemote, suite, name);
  }
  if (settings.wasm()) {
    return Find(kNotWasm, suite, name);
  }
  if (settings.vmm()) {
    return FindVmm(settings, suite, name);
  }
  return settings.gvisor() ? Find(kNotGvisor, suite, name) : "";
}

}  // namespace gantry::e2e
