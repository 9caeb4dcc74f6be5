// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/io/fakes.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include <gantry/toolkit/process/pidfd.h>

#include "core/os/poll.h"
#include "core/os/process.h"

namespace gantry::io {

ChildProcess::~ChildProcess() {
  if (!Ended()) {
    IgnoreError(Signal(SIGKILL), "it may have ended");
    IgnoreError(Wait(std::chrono::seconds(10)), "the test is over");
  }
}

Status ChildProcess::Signal(int signal) { return SendSignal(child_.pidfd.get(), signal); }

std::optional<WaitStatus> ChildProcess::Ended() const {
  const std::lock_guard lock(mutex_);
  int status = 0;
  if (!ended_ && waitpid(child_.process.pid, &status, WNOHANG) == child_.process.pid) {
    ended_ = WaitStatus{status, 0};
  }
  return ended_;
}

Result<WaitStatus> ChildProcess::Wait(std::chrono::milliseconds limit) {
  GANTRY_TRY([[maybe_unused]] uint32_t ready, os::Poll(child_.pidfd.get(), EPOLLIN, limit));
  if (const auto ended = Ended()) {
    return *ended;
  }
  return Fail(Code::kDeadlineExceeded, "wait for a child");
}

FakeHost::FakeHost() : thread_([this] { loop_.Run(); }) {}

FakeHost::~FakeHost() {
  loop_.Stop();
  thread_.join();
}

void FakeHost::Settle() {
  const auto done = std::make_shared<std::promise<void>>();
  loop_.Post([done] { done->set_value(); });
  done->get_future().wait();
}

void FakeHost::PutThen(std::vector<StoredFd> fds, std::move_only_function<void(Status)> done) {
  loop_.Post([this, fds = std::move(fds), done = std::move(done)]() mutable {
    done(Put(std::move(fds)));
  });
}

void FakeHost::AwaitStreams(std::vector<std::string> ids,
                            std::function<void(size_t, StreamConnection)> arrived,
                            std::function<void()> looked) {
  loop_.Post(
      [this, ids = std::move(ids), arrived = std::move(arrived), looked = std::move(looked)] {
        std::vector<std::pair<size_t, StreamConnection>> waiting;
        {
          const std::lock_guard lock(mutex_);
          awaited_ = ids;
          arrived_ = arrived;
          for (size_t i = 0; i < ids.size(); ++i) {
            if (const auto found = parked_.find(ids[i]); found != parked_.end()) {
              waiting.emplace_back(i, StreamConnection{found->second.number, found->second.stream,
                                                       found->second.socket.Duplicate().value()});
            }
          }
        }
        for (auto& [which, connection] : waiting) {
          arrived(which, std::move(connection));
        }
        looked();
      });
}

void FakeHost::ForgetStreams() {
  const std::lock_guard lock(mutex_);
  awaited_.clear();
  arrived_ = nullptr;
}

void FakeHost::TookStream(uint64_t number) {
  const std::lock_guard lock(mutex_);
  took_.push_back(number);
  std::erase_if(parked_, [&](const auto& one) { return one.second.number == number; });
}

void FakeHost::Connect(const std::string& id, StreamConnection connection) {
  loop_.Post([this, id, connection = std::move(connection)]() mutable {
    std::function<void(size_t, StreamConnection)> arrived;
    size_t which = 0;
    StreamConnection second{connection.number, connection.stream,
                            connection.socket.Duplicate().value()};
    {
      const std::lock_guard lock(mutex_);
      parked_[id] = std::move(connection);
      const auto found = std::ranges::find(awaited_, id);
      if (found != awaited_.end()) {
        which = static_cast<size_t>(found - awaited_.begin());
        arrived = arrived_;
      }
    }
    if (arrived) {
      arrived(which, std::move(second));
    }
  });
  Settle();
}

std::vector<uint64_t> FakeHost::Took() {
  const std::lock_guard lock(mutex_);
  return took_;
}

Status FakeHost::Put(std::vector<StoredFd> fds) {
  const std::lock_guard lock(mutex_);
  if (fail_put) {
    return Fail(Code::kResourceExhausted, "the store is full");
  }
  for (StoredFd& fd : fds) {
    store_[fd.name] = std::move(fd.fd);
  }
  return {};
}

Status FakeHost::Hold(std::vector<HeldFifo> fifos) {
  if (on_hold) {
    on_hold();
  }
  std::vector<StoredFd> fds;
  for (HeldFifo& held : fifos) {
    const bool reads = held.end == os::PipeEnd::kRead;
    GANTRY_TRY(UniqueFd end, reads ? os::OpenPipeEnd(held.fifo.get(), os::PipeEnd::kRead)
                                   : os::OpenWriteEnd(held.fifo.get()));
    fds.push_back({std::move(held.name), std::move(end)});
  }
  return Put(std::move(fds));
}

void FakeHost::Drop(std::vector<std::string> names) {
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    store_.erase(name);
  }
}

Result<std::shared_ptr<HostProcess>> FakeHost::Spawn(SpawnRequest request) {
  os::SpawnRequest spawn;
  spawn.argv = request.argv;
  spawn.env = request.env;
  for (const auto& [fd, target] : request.fds) {
    spawn.descriptors.push_back({fd.get(), target});
  }
  GANTRY_TRY(os::SpawnResult child, os::SpawnProcess(spawn));
  auto process = std::make_shared<ChildProcess>(std::move(child));
  const std::lock_guard lock(mutex_);
  spawned_[request.tag] = process;
  return process;
}

std::shared_ptr<HostProcess> FakeHost::FindSpawned(std::string_view tag) {
  const std::lock_guard lock(mutex_);
  const auto found = spawned_.find(tag);
  return found == spawned_.end() ? nullptr : found->second;
}

void FakeHost::ConsoleSignal(uint32_t signal) {
  if (on_signal) {
    on_signal();
  }
  const std::lock_guard lock(mutex_);
  signals_.push_back(signal);
}

std::vector<uint32_t> FakeHost::Signals() {
  const std::lock_guard lock(mutex_);
  return signals_;
}

void FakeHost::Log(LogLevel, std::string_view message) {
  const std::lock_guard lock(mutex_);
  logged_.emplace_back(message);
}

std::vector<std::string> FakeHost::Names() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, fd] : store_) {
    names.push_back(name);
  }
  return names;
}

std::vector<StoredFd> FakeHost::Copies() {
  const std::lock_guard lock(mutex_);
  std::vector<StoredFd> copies;
  for (const auto& [name, fd] : store_) {
    copies.push_back({name, fd.Duplicate().value()});
  }
  return copies;
}

bool FakeHost::AwaitNames(std::vector<std::string> names) {
  std::ranges::sort(names);
  return Eventually([&] { return Names() == names; });
}

std::vector<std::string> FakeHost::Logged() {
  const std::lock_guard lock(mutex_);
  return logged_;
}

std::shared_ptr<ChildProcess> Shell(const std::string& script,
                                    std::vector<std::pair<int, int>> fds) {
  os::SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  for (const auto& [fd, target] : fds) {
    request.descriptors.push_back({fd, target});
  }
  return std::make_shared<ChildProcess>(os::SpawnProcess(request).value());
}

}  // namespace gantry::io
