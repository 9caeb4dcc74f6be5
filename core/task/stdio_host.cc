// SPDX-License-Identifier: Apache-2.0
//
// Called by workers and by the IO thread; what the keeper has to do for it is asked for on the
// loop. Console signals are passed on one after the other, and never more than a few.
#include "core/task/stdio_host.h"

#include <algorithm>
#include <utility>

#include "core/async/ask.h"
#include "core/async/loop.h"
#include "core/io/process_io.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/link/messages.h"
#include "core/log/log.h"

namespace gantry::task {
namespace {

using All = std::vector<keeper_client::ToStore>;

/// Beyond these, of a user who leans on a key or a client that sends nothing else, more of
/// the same change nothing.
constexpr size_t kMaxConsoleSignals = 16;

async::Task<void> StoreAndTell(keeper_client::KeeperLink& link, All all,
                               std::move_only_function<void(Status)> done) {
  done(co_await link.PutAll(std::move(all)));
}

}  // namespace

Status StdioHost::Put(std::vector<io::StoredFd> fds) {
  auto all = std::make_shared<All>();
  for (io::StoredFd& stored : fds) {
    all->push_back({prefix_ + stored.name, std::move(stored.fd)});
  }
  return async::Ask(services_.loop, [this, all] { return services_.link.PutAll(std::move(*all)); });
}

Status StdioHost::Hold(std::vector<io::HeldFifo> fifos) {
  auto all = std::make_shared<All>();
  for (io::HeldFifo& held : fifos) {
    all->push_back(
        {prefix_ + held.name, std::move(held.fifo),
         held.end == os::PipeEnd::kRead ? link::StoreAs::kReadEnd : link::StoreAs::kWriteEnd});
  }
  return async::Ask(services_.loop, [this, all] { return services_.link.PutAll(std::move(*all)); });
}

void StdioHost::PutThen(std::vector<io::StoredFd> fds, std::move_only_function<void(Status)> done) {
  All all;
  for (io::StoredFd& stored : fds) {
    all.push_back({prefix_ + stored.name, std::move(stored.fd)});
  }
  services_.loop.Post(
      [&link = services_.link, all = std::move(all), done = std::move(done)]() mutable {
        async::Start(StoreAndTell(link, std::move(all), std::move(done)));
      });
}

void StdioHost::AwaitStreams(std::vector<std::string> ids,
                             std::function<void(size_t, io::StreamConnection)> arrived,
                             std::function<void()> looked) {
  services_.loop.Post([&streams = services_.link.streams(), address = group_, ids = std::move(ids),
                       awaited = awaited_, arrived = std::move(arrived),
                       looked = std::move(looked)] {
    for (size_t i = 0; i < ids.size(); ++i) {
      awaited->push_back(
          streams.Await(address, ids[i], [arrived, i](keeper_client::ParkedStreams::Stream stream) {
            arrived(i, {stream.connection, stream.stream, std::move(stream.socket)});
          }));
    }
    looked();
  });
}

void StdioHost::ForgetStreams() {
  services_.loop.Post([&streams = services_.link.streams(), awaited = awaited_] {
    for (const uint64_t one : std::exchange(*awaited, {})) {
      streams.Forget(one);
    }
  });
}

void StdioHost::TookStream(uint64_t number) {
  services_.loop.Post([&streams = services_.link.streams(), number] { streams.Took(number); });
}

void StdioHost::Drop(std::vector<std::string> names) {
  services_.loop.Post([&link = services_.link, prefix = prefix_, names = std::move(names)] {
    for (const std::string& name : names) {
      link.Drop(prefix + name);
    }
  });
}

Result<std::shared_ptr<HostProcess>> StdioHost::Spawn(SpawnRequest request) {
  request.tag = prefix_ + request.tag;
  spawned_ = true;
  auto kept = std::make_shared<SpawnRequest>(std::move(request));
  GANTRY_TRY(keeper_client::WatchedProcessPtr process, async::Ask(services_.loop, [this, kept] {
               return services_.processes.Spawn(std::move(*kept), group_);
             }));
  return std::shared_ptr<HostProcess>(std::move(process));
}

std::shared_ptr<HostProcess> StdioHost::FindSpawned(std::string_view tag) {
  const std::string name = prefix_ + std::string(tag);
  spawned_ = true;
  return async::Call(services_.loop,
                     [this, name] { return services_.processes.FindSpawned(name); });
}

void StdioHost::ForgetEnded() {
  if (spawned_) {
    services_.processes.ForgetEnded(prefix_);
  }
}

void StdioHost::ConsoleSignal(uint32_t signal) {
  {
    const MutexLock lock(mutex_);
    if (console_signals_.size() >= kMaxConsoleSignals &&
        std::ranges::contains(console_signals_, signal)) {
      return;
    }
    console_signals_.push_back(signal);
    if (std::exchange(taking_, true)) {
      return;
    }
  }
  services_.loop.Post(on_signals_);
}

uint32_t StdioHost::TakeConsoleSignal() {
  const MutexLock lock(mutex_);
  taking_ = !console_signals_.empty();
  if (!taking_) {
    return 0;
  }
  const uint32_t signal = console_signals_.front();
  console_signals_.pop_front();
  return signal;
}

void StdioHost::Log(LogLevel level, std::string_view message) {
  log::Log(level, {{"stdio", prefix_}}, "{}", message);
}

std::shared_ptr<io::ProcessIo> WithHost(std::unique_ptr<io::ProcessIo> streams,
                                        std::shared_ptr<StdioHost> host) {
  struct Both {
    std::shared_ptr<StdioHost> host;
    std::unique_ptr<io::ProcessIo> streams;
  };

  auto both = std::make_shared<Both>(std::move(host), std::move(streams));
  io::ProcessIo* const all = both->streams.get();
  return {std::move(both), all};
}

std::vector<std::string> NamesBelow(const std::vector<std::string>& names,
                                    std::string_view prefix) {
  std::vector<std::string> below;
  for (auto name = std::ranges::lower_bound(names, prefix);
       name != names.end() && name->starts_with(prefix); ++name) {
    below.push_back(name->substr(prefix.size()));
  }
  return below;
}

async::Task<std::vector<io::StoredFd>> TakeStored(keeper_client::KeeperLink& link,
                                                  std::string prefix,
                                                  std::vector<std::string> names) {
  std::vector<std::string> full;
  full.reserve(names.size());
  for (const std::string& name : names) {
    full.push_back(prefix + name);
  }
  std::vector<Result<UniqueFd>> taken = co_await link.TakeAll(std::move(full));
  std::vector<io::StoredFd> stored;
  for (size_t i = 0; i < names.size(); ++i) {
    if (taken[i]) {
      stored.push_back({names[i], std::move(*taken[i])});
    } else {
      LogWarning("{}", taken[i].error().message);
    }
  }
  co_return stored;
}

}  // namespace gantry::task
