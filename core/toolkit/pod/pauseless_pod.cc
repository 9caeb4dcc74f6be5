// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/pod/holder.h>
#include <gantry/toolkit/pod/pauseless_pod.h>
#include <gantry/toolkit/pod/pod_files.h>

namespace gantry {
namespace {

/// A holder starts in a millisecond.
constexpr std::chrono::milliseconds kStartLimit = std::chrono::seconds(30);
/// Of an end that nobody knows. Source: containerd 2.3.4, client/task.go, UnknownExitStatus.
constexpr uint32_t kUnknownExitStatus = 255;

}  // namespace

PauselessPod::PauselessPod(SandboxRequest request, PodConfig config, SandboxContext& context)
    : request_(std::move(request)), config_(std::move(config)), context_(context) {}

Result<std::unique_ptr<PauselessPod>> PauselessPod::Make(const SandboxRequest& request,
                                                         SandboxContext& context) {
  GANTRY_TRY(PodConfig config, ParsePodConfig(request.pod_config));
  return std::unique_ptr<PauselessPod>(new PauselessPod(request, std::move(config), context));
}

Status PauselessPod::Check() const {
  GANTRY_CHECK_OK(HolderRequestOf(request_, config_));
  return {};
}

Status PauselessPod::Start() {
  GANTRY_TRY(HolderRequest holder_request, HolderRequestOf(request_, config_));
  GANTRY_TRY(holder_request.program, FindHolder());
  GANTRY_CHECK_OK(MakePodFiles(request_.bundle, config_));
  const Deadline deadline =
      std::chrono::steady_clock::now() + std::min(context_.TimeLeft(), kStartLimit);
  auto holder = StartHolder(context_, holder_request, deadline,
                            [this](const std::shared_ptr<HostProcess>& process) -> Status {
                              GANTRY_CHECK_OK(context_.Save(
                                  Format("{} {}", process->pid().value, process->start_time())));
                              return context_.Bind(process);
                            });
  if (!holder) {
    IgnoreError(RemovePodFiles(request_.bundle), "the first error counts");
    return std::unexpected(std::move(holder).error());
  }
  holder_ = std::move(*holder);
  return {};
}

Status PauselessPod::TakeUp(const std::string& blob) {
  const size_t space = blob.find(' ');
  if (space == std::string::npos) {
    EndUnsavedHolder(context_, kStartLimit);
    return {};
  }
  GANTRY_TRY(const int64_t pid, ParseNumber(std::string_view(blob).substr(0, space)));
  GANTRY_TRY(const int64_t start, ParseNumber(std::string_view(blob).substr(space + 1)));
  auto holder = context_.Recover({static_cast<int32_t>(pid)}, static_cast<uint64_t>(start));
  if (!holder && holder.error().code != Code::kNotFound) {
    return std::unexpected(std::move(holder).error());
  }
  if (!holder) {
    // It held, it is gone, and its end is lost with whoever kept it.
    context_.Exited(ExitedNow(kUnknownExitStatus));
    return {};
  }
  holder_ = std::move(*holder);
  return context_.Bind(holder_);
}

Status PauselessPod::Stop(std::chrono::milliseconds limit) {
  return holder_ ? StopHolder(*holder_, limit) : Status();
}

Status PauselessPod::Shutdown() {
  GANTRY_CHECK_OK(Stop(std::min(context_.TimeLeft(), kStartLimit)));
  return RemovePodFiles(request_.bundle);
}

Result<std::string> PauselessPod::WithFiles(const std::string& spec_json) const {
  return WithPodFiles(spec_json, request_, config_);
}

}  // namespace gantry
