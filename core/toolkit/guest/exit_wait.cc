// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <gantry/toolkit/guest/exit_wait.h>

namespace gantry {
namespace {

/// It is readable: the answer is there, or the rest of it is on its way.
constexpr std::chrono::seconds kReadLimit{5};

}  // namespace

Result<std::shared_ptr<ExitWait>> ExitWait::Begin(SandboxContext& context, Questions questions,
                                                  Ended ended) {
  std::shared_ptr<ExitWait> wait(new ExitWait(std::move(ended)));
  for (std::unique_ptr<ExitQuestion>& question : questions) {
    wait->branches_.push_back({std::move(question), nullptr});
  }
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < wait->branches_.size(); ++i) {
    const std::weak_ptr<ExitWait> weak = wait;
    const int fd = wait->branches_[i].question->fd();
    GANTRY_TRY(watches.emplace_back(), context.WatchReadable(fd, [weak, i] {
      if (const auto self = weak.lock()) {
        self->OnReadable(i);
      }
    }));
  }
  // Until then their callbacks do nothing, and come again: the first to tell ends all branches.
  const std::lock_guard lock(wait->mutex_);
  for (size_t i = 0; i < watches.size(); ++i) {
    wait->branches_[i].watch = std::move(watches[i]);
  }
  return wait;
}

void ExitWait::OnReadable(size_t branch) {
  std::unique_ptr<Watch> done;
  std::unique_lock lock(mutex_);
  if (!ended_ || branches_[branch].watch == nullptr) {
    return;
  }
  Branch& here = branches_[branch];
  const auto status = here.question->Peek(std::chrono::steady_clock::now() + kReadLimit);
  here.failed = !status;
  if (status || std::ranges::all_of(branches_, &Branch::failed)) {
    Tell(std::move(lock), status);
    return;
  }
  done = std::move(here.watch);
  lock.unlock();
}

void ExitWait::Settle(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!ended_) {
    told_.wait(lock, [this] { return is_told_; });
    return;
  }
  std::optional<uint32_t> status;
  for (Branch& branch : branches_) {
    if (status = branch.question->Peek(deadline); status) {
      break;
    }
  }
  Tell(std::move(lock), status);
}

void ExitWait::Tell(std::unique_lock<std::mutex> lock, std::optional<uint32_t> status) {
  const auto ended = std::exchange(ended_, nullptr);
  // A watch may wait for its callback, which may wait for the lock.
  std::vector<Branch> closing = std::exchange(branches_, {});
  lock.unlock();
  ended(status);
  lock.lock();
  is_told_ = true;
  told_.notify_all();
  lock.unlock();
  for (Branch& branch : closing) {
    branch.watch.reset();
  }
}

}  // namespace gantry
