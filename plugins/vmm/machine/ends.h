// SPDX-License-Identifier: Apache-2.0
//
// Which part of a machine ends first: its processes, and a time that somebody sets. One watch for
// all of them, without a thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

enum class EndedPart {
  kVmm,
  kVsock,
  /// None has; the time that was set is over.
  kTime,
};

/// Thread: any; `Add` before `Watch`.
class Ends {
 public:
  static Result<std::unique_ptr<Ends>> Make();
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() = default;

  /// Told once, also where it has ended already.
  Status Add(EndedPart part, const HostProcess& process);
  /// `ended` is called with each part that has ended, by now too, the VMM first.
  Status Watch(SandboxContext& context, std::function<void(EndedPart part)> ended);

  /// `ended` is not called any more when it returns. Not within it.
  void Stop() { watch_.reset(); }

  /// The time is over then, and not at an earlier one.
  void SetTime(std::chrono::milliseconds from_now);

  /// Readable when a part has ended, as long as nobody watches.
  int fd() const { return epoll_.get(); }

 private:
  Ends(UniqueFd epoll, UniqueFd timer) : epoll_(std::move(epoll)), timer_(std::move(timer)) {}

  void OnReadable();

  const UniqueFd epoll_;
  const UniqueFd timer_;
  std::vector<UniqueFd> processes_;
  std::function<void(EndedPart part)> ended_;
  /// Last, so that it ends first.
  std::unique_ptr<gantry::Watch> watch_;
};

}  // namespace gantry::vmm
