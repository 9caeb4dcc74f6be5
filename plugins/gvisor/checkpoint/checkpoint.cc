// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/checkpoint/checkpoint.h"

#include <signal.h>
#include <sys/statvfs.h>

#include <gantry/format.h>

#include "plugins/gvisor/pod/forwarding.h"

namespace gantry::gvisor {
namespace {

Status CheckCount(const ImageInfo& info, std::string_view attempted, Code code) {
  if (info.containers == 1) {
    return {};
  }
  return Fail(code,
              "{}: {} containers are in that sandbox; gantry restores sandboxes of one container",
              attempted, info.containers);
}

/// A sentry may say anything where it cannot write: 20240729 speaks of a nil pointer.
void SayWhereFull(const std::string& directory, Error& error) {
  struct statvfs status{};
  if (error.code == Code::kInternal && statvfs(directory.c_str(), &status) == 0 &&
      status.f_bfree == 0) {
    error.code = Code::kResourceExhausted;
    error.message += Format("; no space left on device, at '{}'", directory);
  }
}

Status SaveTo(Pod& pod, const Image& image, bool exit, std::string_view what) {
  const auto sentry = pod.sentry();
  if (!sentry || !pod.IsAlive()) {
    return Fail(Code::kUnavailable, "{}: its sandbox has ended", what);
  }
  GANTRY_TRY(const UniqueFd runsc, pod.Runsc());
  GANTRY_TRY(const std::string build, BuildOf(runsc));
  const auto fds = image.Fds();
  // It is told how many there are only when it has been saved.
  const auto saved = [&]() -> Status {
    GANTRY_TRY(const ImageInfo info, ReadImageInfo(image));
    GANTRY_CHECK_OK(CheckCount(info, what, Code::kFailedPrecondition));
    return exit ? pod.process()->Signal(SIGKILL) : Status();
  };
  Status done = SuspendForwarding(pod, pod.StepDeadline());
  if (done) {
    done =
        sentry->Checkpoint(CheckpointArg(build), fds, saved, exit, pod.StepDeadline(kImageSteps));
  }
  ContinueForwarding(pod);
  return done;
}

}  // namespace

Status SaveSandbox(Pod& pod, const CheckpointRequest& request) {
  const std::string what = Format("checkpoint container '{}'", pod.record().root);
  if (request.path.empty()) {
    return Fail(Code::kInvalidArgument, "{}: no path to put it", what);
  }
  GANTRY_TRY(const Image image, MakeImage(request.path));
  Status saved = SaveTo(pod, image, request.exit, what);
  if (!saved) {
    SayWhereFull(request.path, saved.error());
    IgnoreError(RemoveImage(request.path), "the first error counts");
    return saved;
  }
  if (request.exit) {
    IgnoreError(pod.process()->Wait(pod.options().timeout), "it has been killed");
  }
  return {};
}

std::unexpected<Error> NotTheRoot(const Pod& pod, std::string_view attempted,
                                  const ContainerId& container) {
  const std::string root = pod.record().root;
  return Fail(Code::kFailedPrecondition,
              "{} container '{}': gVisor saves and restores whole sandboxes, by their root, which "
              "here is {}",
              attempted, container.str(),
              root.empty() ? "none of the containers" : "'" + root + "'");
}

Status CheckImage(const std::string& directory, const Runsc& runsc) {
  GANTRY_TRY(const Image image, OpenImage(directory));
  GANTRY_TRY(const ImageInfo info, ReadImageInfo(image));
  GANTRY_CHECK_OK(CheckCount(info, Format("restore from the checkpoint '{}'", directory),
                             Code::kInvalidArgument));
  GANTRY_TRY(const std::string build, BuildOf(runsc.runsc.file));
  if (!info.build.empty() && info.build != build) {
    return Fail(Code::kFailedPrecondition,
                "restore from the checkpoint '{}': another build of runsc has saved it than '{}' "
                "({}), and gVisor restores with the same build only",
                directory, runsc.runsc.path, runsc.version);
  }
  return {};
}

}  // namespace gantry::gvisor
