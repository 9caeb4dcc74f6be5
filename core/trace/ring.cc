// SPDX-License-Identifier: Apache-2.0
#include "core/trace/ring.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <gantry/unique_fd.h>

namespace gantry::trace {

Result<std::vector<Step>> ReadRing(int ring) {
  std::string bytes(kRingBytes, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got =
        pread(ring, bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return FailErrno(errno, "read '{}'", kFileName);
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  if (!bytes.starts_with(EncodeHead())) {
    return Fail(Code::kDataLoss, "read '{}': it is no ring of this version of gantry", kFileName);
  }
  std::vector<Step> steps;
  for (size_t at = kSlotBytes; at < bytes.size(); at += kSlotBytes) {
    if (std::optional<Step> step = DecodeSlot(std::string_view(bytes).substr(at, kSlotBytes))) {
      steps.push_back(std::move(*step));
    }
  }
  std::ranges::sort(steps, {}, &Step::number);
  return steps;
}

Result<std::vector<Step>> ReadRing(const std::string& run_dir) {
  const std::string path = run_dir + "/" + kFileName;
  const UniqueFd ring(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!ring) {
    return FailErrno(errno, "open '{}'", path);
  }
  return ReadRing(ring.get());
}

}  // namespace gantry::trace
