// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/exit_question.h"

#include <optional>
#include <utility>

#include "plugins/gvisor/sentry/container_manager.h"

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

}  // namespace gantry::gvisor
