// SPDX-License-Identifier: Apache-2.0
#include "core/io/file_uses.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gantry::io {

FileUses::~FileUses() { loop_.Unwatch(readable_); }

Result<UseId> FileUses::Watch(int fd, std::function<void()> function) {
  if (!kernel_) {
    GANTRY_TRY(kernel_, os::FileUse::Open());
    readable_ = loop_.Watch(kernel_->fd(), EPOLLIN, [this](uint32_t) { OnUsed(); });
  }
  GANTRY_TRY(const int file, kernel_->Add(fd));
  const UseId id = next_++;
  uses_.emplace(id, Use{file, std::move(function)});
  return id;
}

void FileUses::Unwatch(UseId use) {
  const auto found = uses_.find(use);
  if (found == uses_.end()) {
    return;
  }
  const int file = found->second.file;
  uses_.erase(found);
  // One file has one watch, however many want to know of it.
  if (kernel_ &&
      std::ranges::none_of(uses_, [file](const auto& one) { return one.second.file == file; })) {
    kernel_->Remove(file);
  }
}

void FileUses::OnUsed() {
  if (!kernel_) {
    return;
  }
  const os::FileUse::Used used = kernel_->Take();
  std::vector<UseId> due;
  for (const auto& [id, use] : uses_) {
    if (used.lost || std::ranges::contains(used.files, use.file)) {
      due.push_back(id);
    }
  }
  for (const UseId id : due) {
    // One may end another.
    if (const auto found = uses_.find(id); found != uses_.end()) {
      const std::function<void()> function = found->second.function;
      function();
    }
  }
}

}  // namespace gantry::io
