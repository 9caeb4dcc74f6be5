// SPDX-License-Identifier: Apache-2.0
//
// A further container of a pod. Its gofer is started when it is made, so that its start is one
// call of the sentry.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gantry/toolkit/stdio/streams.h>

#include "plugins/gvisor/container/container.h"
#include "plugins/gvisor/container/process_end.h"
#include "plugins/gvisor/launch/gofer.h"
#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// Thread: workers, as `Container`.
class SubContainer : public GvisorContainer {
 public:
  SubContainer(const ContainerRequest& request, ContainerContext& context,
               std::shared_ptr<Pod> pod);
  SubContainer(const SubContainer&) = delete;
  SubContainer& operator=(const SubContainer&) = delete;

  ~SubContainer() override;

  /// On failure nothing is left.
  Status Create();
  /// After a restart of the engine. `blob`: what was saved, or empty. Errors: kAborted: it was
  /// never finished, and what there was of it has been removed.
  Status Recover(const std::string& blob);

  Result<bool> HasStarted() override;
  Status Start() override;
  Status Kill(uint32_t signal) override;
  Status KillAll(uint32_t signal) override;
  Status ConsoleSignal(uint32_t signal) override;
  Status Delete() override;

 protected:
  std::optional<ContainerEnd> End() const override;

 private:
  std::string ExitPath() const;
  GoferRequest GoferRequestOf(const PodRecord& record, const UniqueFd& runsc) const;
  Status ReadSpec();
  /// It is there from now on.
  void HavePidNamespace();
  /// What serves its files: gofer, images, writable layers. `fresh`: it is being made, and what
  /// else is to be there for its start is made while the gofer starts.
  Status OpenFiles(bool fresh);
  Status MakeReady();
  Status Destroy(Sentry& sentry);
  Status KillUnstarted(uint32_t signal);
  Status KeepOwnStreams();
  Status HaveStreams();
  void LetStreamsGo();
  /// Its id and terminal are the sentry's to know. Again: success.
  Status Announce(Deadline deadline);
  /// The spec as it is sent, with the pid namespace that is known by now.
  Result<std::string> SpecToSend();
  Result<Sentry::Started> SendStart(const Streams& streams, Deadline deadline);
  /// `wait`: from `SendStart`; none: an engine before this one has started it.
  Status Watch(std::optional<DurableCall> wait, Deadline deadline);
  std::vector<urpc::Connection> AskForEnd(std::optional<DurableCall> wait, Deadline deadline);
  Result<bool> TakeUpStart(Deadline deadline);
  void EndGofer();

  const ContainerRequest request_;
  const CallNames names_;
  const std::string streams_name_;
  Spec spec_;
  /// With the mounts as they were resolved.
  std::string resolved_;
  Gofer gofer_;
  std::vector<UniqueFd> filestores_;
  /// From when it is made until it is started.
  Streams streams_;
  const std::shared_ptr<EndReport> report_;
  std::shared_ptr<ExitWait> wait_;
  /// The sentry knows of it, by this engine.
  bool announced_ = false;
  /// Held while it is started: who kills it meanwhile waits for that.
  std::timed_mutex start_mutex_;
  /// The sentry has been told to start it, or may have been. Asked at any time.
  std::atomic<bool> started_ = false;
};

}  // namespace gantry::gvisor
