// SPDX-License-Identifier: Apache-2.0
//
// The faults that a first backend of somebody's is likely to have. Each is seen by a rule of
// gantry-backend-test, which the suite `kit` tries.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::faulty {

enum class Fault {
  kNone,
  /// `Save` keeps nothing, so that a recovery knows nothing and says that all has ended.
  kSavesNothing,
  /// `Container::Start` throws.
  kThrows,
  /// A process is spawned, and `Bind` forgotten.
  kBindsNothing,
  /// An exec is a process of the node's, in the node's root.
  kExecsOnTheNode,
  /// A copy of each stream stays open.
  kHoldsStreams,
  /// No seccomp filter, and of the capabilities only the bounding set.
  kConfinesLittle,
  /// Root in place of the user.
  kIsRoot,
  /// `RecoverExec` gives every exec up.
  kLosesExecs,
  /// The init is adopted under a tag and looked for under another one, so that after a restart it
  /// is taken for one that has ended.
  kLosesAdopted,
  /// `HasStarted` is always false.
  kForgetsStarts,
  /// `RecoverContainer` answers with kAborted, and the process runs on.
  kGivesUp,
  /// `Container::Delete` does nothing.
  kDeletesNothing,
  /// The container's mounts are the node's.
  kSharesMounts,
  /// The processes are in no cgroup that the core knows, without limits.
  kHasNoCgroups,
  /// Its processes may use all devices.
  kLimitsNoDevices,
  /// Hooks are neither run nor refused.
  kIgnoresHooks,
};

/// The one that `Fault` of the options names. Errors: kInvalidArgument.
Result<Fault> FaultOf(const std::string& options_json);

/// A spec of a container's, as `fault` makes it.
std::string SpoiledSpec(Fault fault, const std::string& spec_json);
/// An OCI process object.
std::string SpoiledProcess(Fault fault, const std::string& process_json);

}  // namespace gantry::faulty
