// SPDX-License-Identifier: Apache-2.0
//
// A container as an engine before this one has left it.
//
// That it was made is on record only when it was, streams and all: what was cut short before is
// removed and made anew. Afterwards the guest knows all of it, and keeps how it has ended until it
// is told to delete it.
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/vmm/container/container.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {

Status VmmContainer::Recover(const ContainerRequest& request, const std::string& blob) {
  if (!record_->TakeUp(blob)) {
    GANTRY_CHECK_OK(Delete());
    return Fail(Code::kAborted, "recover container '{}': its creation was cut short", id());
  }
  is_made_ = true;
  if (const auto spec = oci::ParseSpec(request.spec_json, "config.json")) {
    pod_->SetOomScore(id(), spec->process.oom_score_adj);
  }
  // From here on its end is heard; what came before is asked for.
  pod_->ends().Add(id(), "", report_, record_, record_->made_at_ns());
  const auto pid = pod_->MachinePid();
  if (!pid) {
    report_->Tell(ExitedNow(kKilledStatus));
    return {};
  }
  pod_->machine().KnowRoom(id(), record_->limits());
  context_.init().SetPid(*pid);
  TakeUp();
  return {};
}

void VmmContainer::TakeUp() {
  const auto found = process_.Find();
  if (!found) {
    // Its machine runs, and so may it: what it does is heard when its agent is there again.
    pod_->context().Log(LogLevel::kError, Format("recover container '{}': {}; it counts as it is "
                                                 "on record",
                                                 id(), found.error().message));
    return;
  }
  using protocol::ProcessState;
  const std::optional<protocol::ProcessReport>& known = *found;
  if (!known) {
    // Its removal was under way.
    report_->Tell(ExitedNow(kKilledStatus));
    return;
  }
  const bool has_ended = known->state == static_cast<uint32_t>(ProcessState::kExited);
  is_started_ = has_ended || known->state == static_cast<uint32_t>(ProcessState::kRunning);
  if (has_ended) {
    report_->Tell(EndOf(*known, record_->made_at_ns()));
  }
}

}  // namespace gantry::vmm
