// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container/process_end.h"

#include <optional>
#include <utility>

#include "plugins/gvisor/container/container.h"
#include "plugins/gvisor/pod/out_of_memory.h"

namespace gantry::gvisor {
namespace {

class SentryQuestion : public ExitQuestion {
 public:
  explicit SentryQuestion(urpc::Connection connection) : connection_(std::move(connection)) {}

  int fd() const override { return connection_.fd().get(); }

  std::optional<uint32_t> Peek(Deadline deadline) override {
    const auto word = ContainerManager::PeekWait(connection_, deadline);
    return word ? std::optional(word->status()) : std::nullopt;
  }

 private:
  urpc::Connection connection_;
};

/// Its sentry is gone, or its gofer, whose end is that of its container alone.
bool WasForMemory(const EndedProcess& ended, std::optional<uint32_t> status) {
  if (!status) {
    return KilledForMemory(*ended.pod, ended.pod->process());
  }
  return *status == kKilledStatus && ended.gofer && KilledForMemory(*ended.pod, ended.gofer);
}

}  // namespace

Result<std::shared_ptr<ExitWait>> AwaitEnd(SandboxContext& context,
                                           std::vector<urpc::Connection> connections,
                                           ExitWait::Ended ended) {
  ExitWait::Questions questions;
  questions.reserve(connections.size());
  for (urpc::Connection& connection : connections) {
    questions.push_back(std::make_unique<SentryQuestion>(std::move(connection)));
  }
  return ExitWait::Begin(context, std::move(questions), std::move(ended));
}

ExitWait::Ended TellEnd(std::shared_ptr<EndReport> report, EndedProcess ended) {
  return [report = std::move(report), ended = std::move(ended)](std::optional<uint32_t> status) {
    const ExitStatus exit = ExitedNow(status.value_or(kKilledStatus));
    const bool out_of_memory = !ended.container.empty() && WasForMemory(ended, status);
    if (ended.leaves_processes) {
      KillLeftovers(*ended.pod, ended.container);
    }
    if (KnownProcess{ended.pid, exit, out_of_memory}.Write(ended.path)) {
      // A sentry that ends waits for those that are connected with it. Before it is told: of an
      // exec whose end is on record the next engine asks nothing here.
      ended.pod->context().Drop(ended.name);
    }
    report->Tell(exit, out_of_memory);
  };
}

}  // namespace gantry::gvisor
