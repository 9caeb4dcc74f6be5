// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/link.h"

namespace gantry::remote {
namespace {

constexpr std::chrono::seconds kCallLimit{30};
constexpr uint32_t kKilled = 137;

}  // namespace

ExitStatus KilledNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {kKilled, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

Result<Message> Link::Ask(const Json& call, const std::vector<int>& fds) {
  GANTRY_TRY(const UniqueFd connection, PassThrough(door_.get()));
  GANTRY_CHECK_OK(SendMessage(connection.get(), call, fds, kCallLimit));
  GANTRY_TRY(Message answer, ReceiveMessage(connection.get(), kCallLimit));
  GANTRY_CHECK_OK(CheckAnswer(answer.body));
  return answer;
}

Status Link::Listen() {
  GANTRY_TRY(UniqueFd connection, PassThrough(door_.get()));
  GANTRY_CHECK_OK(SendMessage(connection.get(), {{"do", "events"}}, {}, kCallLimit));
  const int fd = connection.get();
  {
    const std::lock_guard lock(mutex_);
    reports_ = std::move(connection);
  }
  GANTRY_TRY(auto watch, context_.WatchReadable(fd, [this] { OnReadable(); }));
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
  return {};
}

void Link::Close() {
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    watch = std::move(watch_);
  }
  watch.reset();
  const std::lock_guard lock(mutex_);
  reports_.reset();
}

void Link::Register(const ProcessName& name, ProcessContext& process, ContainerContext* container) {
  const std::lock_guard lock(mutex_);
  listeners_[name] = {&process, container};
}

void Link::Unregister(const ProcessName& name) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(name);
}

void Link::OnReadable() {
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      return;
    }
    fd = reports_.get();
  }
  const Result<Message> report = ReceiveMessage(fd, kCallLimit);
  if (report) {
    PassOn(report->body);
    return;
  }
  // It talks to nobody any more: it has ended.
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    watch = std::move(watch_);
  }
  SandboxEnded();
}

void Link::PassOn(const Json& report) {
  const bool is_exit = report.contains("exit");
  const Json& fields = is_exit ? report["exit"] : report.value("oom", Json::object());
  const ProcessName name(fields.value("container", std::string()),
                         fields.value("exec", std::string()));
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(name);
  if (found == listeners_.end()) {
    return;  // Not recovered yet: then its state is asked for.
  }
  if (is_exit) {
    found->second.process->Exited({fields.value("status", 0U), fields.value("at", int64_t{0})});
  } else if (found->second.container != nullptr) {
    found->second.container->OutOfMemory();
  }
}

void Link::SandboxEnded() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, listener] : listeners_) {
    listener.process->Exited(KilledNow());
  }
}

}  // namespace gantry::remote
