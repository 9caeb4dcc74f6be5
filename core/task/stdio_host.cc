// SPDX-License-Identifier: Apache-2.0
#include "core/task/stdio_host.h"

#include <utility>

#include "core/log/log.h"
#include "core/os/ask.h"

namespace gantry::task {
namespace {

using Fds = std::shared_ptr<std::vector<io::StoredFd>>;

os::Task<Status> PutAll(engine::KeeperLink& link, std::string prefix, Fds fds) {
  for (io::StoredFd& stored : *fds) {
    GANTRY_CO_CHECK_OK(co_await link.Put(prefix + stored.name, std::move(stored.fd)));
  }
  co_return Status();
}

}  // namespace

Status StdioHost::Put(std::vector<io::StoredFd> fds) {
  auto kept = std::make_shared<std::vector<io::StoredFd>>(std::move(fds));
  return os::Ask(services_.loop, [this, kept] { return PutAll(services_.link, prefix_, kept); });
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
  auto kept = std::make_shared<SpawnRequest>(std::move(request));
  GANTRY_TRY(engine::WatchedProcessPtr process, os::Ask(services_.loop, [this, kept] {
               return services_.processes.Spawn(std::move(*kept));
             }));
  return std::shared_ptr<HostProcess>(std::move(process));
}

std::shared_ptr<HostProcess> StdioHost::FindSpawned(std::string_view tag) {
  const std::string name = prefix_ + std::string(tag);
  return os::Call(services_.loop, [this, name] { return services_.processes.FindSpawned(name); });
}

void StdioHost::Log(LogLevel level, std::string_view message) {
  log::Log(level, {{"stdio", prefix_}}, "{}", message);
}

os::Task<std::vector<io::StoredFd>> TakeStored(engine::KeeperLink& link,
                                               std::vector<std::string> names, std::string prefix) {
  std::vector<io::StoredFd> stored;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    if (Result<UniqueFd> fd = co_await link.Take(name)) {
      stored.push_back({name.substr(prefix.size()), std::move(*fd)});
    } else {
      LogWarning("{}", fd.error().message);
    }
  }
  co_return stored;
}

}  // namespace gantry::task
