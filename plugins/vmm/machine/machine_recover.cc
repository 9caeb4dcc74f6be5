// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/machine_parts.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {

// Nobody but this object can find all of it.
Status Machine::Parts::Recover(const std::string& blob) {
  Status recovered = TakeUp(blob);
  if (!recovered && recovered.error().code != Code::kNotFound &&
      recovered.error().code != Code::kResourceExhausted) {
    IgnoreError(Discard(), "what is told is why it could not be taken up");
  }
  return recovered;
}

// Of a process that ended very long ago the keeper knows nothing any more; where its machine was
// saved it was there.
Status Machine::Parts::TakeUp(const std::string& blob) {
  const auto saved = DecodeProto<SavedMachine>(blob);
  const SavedMachine known = saved.value_or(SavedMachine());
  vmm_ = FindPart(kVmmTag, known.vmm_pid, known.vmm_start);
  vsock_ = FindPart(kVsockTag, known.vsock_pid, known.vsock_start);
  is_untagged_ = known.vmm_pid != 0;
  if (!saved || saved->session.empty()) {
    // Who it is stands at its user, too; of one that has none yet it is free again at once.
    if (Exists(directory_.sandbox())) {
      user_.uid =
          TakeUser(request_.options, directory_.sandbox()).value_or(std::optional<uint32_t>());
    }
    // One that had waited for a pod has no tag, and its numbers would have been in the record.
    GANTRY_CHECK_OK(directory_.EndNoted());
    GANTRY_CHECK_OK(Discard());
    return Fail(Code::kNotFound, "recover the VM of '{}': {}", request_.id,
                saved || blob.empty() ? "its start was never finished"
                                      : "its record cannot be read, and it was ended");
  }
  RestoreRequest(*saved, request_);
  user_ = {.uid = saved->uid, .gid = saved->gid};
  accelerator_ = saved->kvm ? Accelerator::kKvm : Accelerator::kTcg;
  session_ = saved->session;
  GANTRY_CHECK_OK(MakeVm());
  const bool needs_vsock = !IsHybrid(request_.options.vmm);
  if (!vmm_ || vmm_->Ended() || (needs_vsock && (!vsock_ || vsock_->Ended()))) {
    return RecoverEnd();
  }
  GANTRY_CHECK_OK(Listen());
  if (vsock_) {
    GANTRY_CHECK_OK(ends_->Add(EndedPart::kVsock, *vsock_));
  }
  GANTRY_CHECK_OK(ends_->Add(EndedPart::kVmm, *vmm_));
  ends_->SetTime(means_.redial_limit);
  {
    const MutexLock lock(mutex_);
    quiet_ = false;
  }
  return WatchParts();
}

/// Without a number it has a tag.
std::shared_ptr<HostProcess> Machine::Parts::FindPart(const char* tag, int32_t pid,
                                                      uint64_t start_time) {
  if (pid == 0) {
    return context_.FindSpawned(tag);
  }
  return context_.Recover({pid}, start_time).value_or(nullptr);
}

Status Machine::Parts::RecoverEnd() {
  Error why{Code::kUnavailable,
            0,
            Format("the VM of '{}' has ended while no engine was there", request_.id),
            {}};
  if (const auto vmm = vmm_ ? vmm_->Ended() : std::nullopt) {
    why = WhyOfVmm(*vmm);
  } else if (const auto vsock = vsock_ ? vsock_->Ended() : std::nullopt) {
    why = WhyOfVsock(*vsock);
  }
  GANTRY_CHECK_OK(KillAll());
  // Nobody dials any more.
  GANTRY_TRY(auto ends, UnixSocketPair());
  GANTRY_TRY(streams_, StreamListener::On(std::move(ends.first)));
  const MutexLock lock(mutex_);
  end_ = std::move(why);
  return {};
}

}  // namespace gantry::vmm
