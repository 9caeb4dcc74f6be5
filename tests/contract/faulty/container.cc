// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/faulty/container.h"

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::faulty {
namespace {

constexpr std::chrono::seconds kEndLimit{10};

/// An exec of the good backend, with a context of its own.
class PassedExec final : public Process {
 public:
  PassedExec(Fault fault, ProcessContext& core) : context_(fault, core) {}

  ProcessContext& context() { return context_; }

  void Take(std::unique_ptr<Process> good) { good_ = std::move(good); }

  Status Start() override { return good_->Start(); }

  Status Delete() override { return good_->Delete(); }

 private:
  FaultyProcessContext context_;
  std::unique_ptr<Process> good_;
};

/// A process of the node's in place of one in the container.
class NodesProcess final : public Process {
 public:
  NodesProcess(std::string process_json, SandboxContext& sandbox, ProcessContext& context)
      : process_json_(std::move(process_json)), sandbox_(sandbox), context_(context) {}

  Status Start() override {
    const nlohmann::json process = ReadJson(process_json_, kSpecJson);
    SpawnRequest request;
    request.argv = {"/usr/bin/env", "PATH=/usr/bin:/bin"};
    for (const nlohmann::json& word : process.at("args")) {
      request.argv.push_back(word.get<std::string>());
    }
    GANTRY_TRY(Stdio stdio, context_.TakeStdio());
    int number = 0;
    for (StreamEnd* end : {&stdio.in, &stdio.out, &stdio.err}) {
      if (end->fd) {
        request.fds.emplace_back(std::move(end->fd), number);
      }
      ++number;
    }
    GANTRY_TRY(host_, sandbox_.Spawn(std::move(request)));
    return context_.Bind(host_);
  }

  Status Delete() override {
    if (host_) {
      IgnoreError(host_->Signal(SIGKILL), "it may have ended");
      GANTRY_CHECK_OK(host_->Wait(kEndLimit));
    }
    return {};
  }

 private:
  const std::string process_json_;
  SandboxContext& sandbox_;
  ProcessContext& context_;
  std::shared_ptr<HostProcess> host_;
};

}  // namespace

Status FaultyContainer::Start() {
  if (fault_ == Fault::kThrows) {
    throw std::runtime_error("out of luck");
  }
  return good_ ? good_->Start() : Status();
}

Status FaultyContainer::Delete() {
  return good_ && fault_ != Fault::kDeletesNothing ? good_->Delete() : Status();
}

Result<bool> FaultyContainer::HasStarted() {
  return good_ && fault_ != Fault::kForgetsStarts ? good_->HasStarted() : Result<bool>(false);
}

Result<std::unique_ptr<Process>> FaultyContainer::Exec(const ExecRequest& request,
                                                       ProcessContext& context) {
  if (fault_ == Fault::kExecsOnTheNode) {
    return std::make_unique<NodesProcess>(request.process_json, sandbox_, context);
  }
  auto exec = std::make_unique<PassedExec>(fault_, context);
  ExecRequest spoiled = request;
  spoiled.process_json = SpoiledProcess(fault_, request.process_json);
  GANTRY_TRY(auto good, good_->Exec(spoiled, exec->context()));
  exec->Take(std::move(good));
  return exec;
}

Result<std::unique_ptr<Process>> FaultyContainer::RecoverExec(const ExecRequest& request,
                                                              ProcessContext& context,
                                                              bool started) {
  if (fault_ == Fault::kLosesExecs) {
    return Fail(Code::kAborted, "recover exec '{}': it was not started", request.id.str());
  }
  if (!good_) {
    return LeftOut("recover exec");
  }
  auto exec = std::make_unique<PassedExec>(fault_, context);
  GANTRY_TRY(auto good, good_->RecoverExec(request, exec->context(), started));
  exec->Take(std::move(good));
  return exec;
}

}  // namespace gantry::faulty
