// SPDX-License-Identifier: Apache-2.0
//
// A container of the good backend, whose calls are passed on but for what the fault spoils.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>

#include "tests/contract/faulty/contexts.h"

namespace gantry::faulty {

class FaultyContainer final : public Container {
 public:
  FaultyContainer(Fault fault, SandboxContext& sandbox, ContainerContext& core)
      : fault_(fault), sandbox_(sandbox), context_(fault, core) {}

  /// For the good one, which is then handed over. Null where a fault has none.
  FaultyContainerContext& context() { return context_; }

  void Take(std::unique_ptr<Container> good) { good_ = std::move(good); }

  Status Start() override;
  Status Delete() override;
  Result<bool> HasStarted() override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;

  Status Checkpoint(const CheckpointRequest& request) override {
    return good_ ? good_->Checkpoint(request) : LeftOut("checkpoint");
  }

 private:
  const Fault fault_;
  SandboxContext& sandbox_;
  FaultyContainerContext context_;
  std::unique_ptr<Container> good_;
};

}  // namespace gantry::faulty
