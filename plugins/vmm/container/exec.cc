// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/exec.h"

#include <optional>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/container/guest_spec.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {
namespace {

/// It was made, and the core has its streams.
constexpr const char* kMade = "made";

}  // namespace

VmmExec::VmmExec(std::shared_ptr<Pod> pod, std::string container, const ExecRequest& request,
                 ProcessContext& context)
    : pod_(std::move(pod)),
      request_(request),
      context_(context),
      report_(std::make_shared<EndReport>(context)),
      process_(pod_, std::move(container), request.id.str(), report_) {}

VmmExec::~VmmExec() {
  pod_->ends().Remove(process_.container(), process_.exec());
  report_->Retire();
}

Status VmmExec::Make() {
  protocol::CreateExec wanted;
  wanted.container = process_.container();
  wanted.exec = process_.exec();
  GANTRY_TRY(wanted.process_json, MakeGuestProcess(request_.process_json));
  GANTRY_CHECK_OK(process_.Make(std::move(wanted), request_.terminal, context_));
  return context_.Save(kMade);
}

Status VmmExec::Run() {
  pod_->ends().Add(process_.container(), process_.exec(), report_);
  Status started = process_.Start();
  is_started_ = started.has_value();
  if (!started) {
    // It is not told: the core knows that it never ran.
    pod_->ends().Remove(process_.container(), process_.exec());
  }
  return started;
}

Status VmmExec::Start() {
  if (is_started_) {
    return {};
  }
  Status started = Make();
  if (started) {
    started = Run();
  }
  if (!started) {
    IgnoreError(process_.Delete(), "the first error counts");
  }
  return started;
}

Status VmmExec::Kill(uint32_t signal) {
  if (!is_started_) {
    return Fail(Code::kFailedPrecondition, "signal exec '{}': it has not been started",
                request_.id.str());
  }
  return process_.Signal(signal, false);
}

Status VmmExec::Resize(ConsoleSize size) { return process_.Resize(size); }

Status VmmExec::Delete() {
  GANTRY_CHECK_OK(process_.Delete());
  if (is_started_) {
    report_->Tell(ExitedNow(kKilledStatus));
  }
  pod_->ends().Remove(process_.container(), process_.exec());
  return {};
}

Status VmmExec::Abort(std::string_view reason) {
  GANTRY_CHECK_OK(process_.Delete());
  return Fail(Code::kAborted, "recover exec '{}': {}", request_.id.str(), reason);
}

Status VmmExec::Recover() {
  if (request_.saved != kMade) {
    return Abort("it had not been started");
  }
  const auto pid = pod_->MachinePid();
  is_started_ = true;
  pod_->ends().Add(process_.container(), process_.exec(), report_, nullptr, 0);
  if (!pid) {
    report_->Tell(ExitedNow(kKilledStatus));
    return {};
  }
  context_.SetPid(*pid);
  const auto found = process_.Find();
  if (!found) {
    pod_->context().Log(LogLevel::kError, Format("recover exec '{}': {}; it counts as running",
                                                 request_.id.str(), found.error().message));
    return {};
  }
  using protocol::ProcessState;
  const std::optional<protocol::ProcessReport>& known = *found;
  if (!known) {
    report_->Tell(ExitedNow(kKilledStatus));
  } else if (known->state == static_cast<uint32_t>(ProcessState::kExited)) {
    report_->Tell(EndOf(*known, 0));
  } else if (known->state == static_cast<uint32_t>(ProcessState::kCreated)) {
    Status ran = Run();
    return ran ? std::move(ran) : Abort(ran.error().message);
  }
  return {};
}

}  // namespace gantry::vmm
