// SPDX-License-Identifier: Apache-2.0
//
// containerd's `delete`, which has 5 s. First the keeper is asked, which knows how to end the
// container in order. Only where it gives no answer, or does not know the instance, does the shim
// kill by the bundle's record: of a pod its containers first, then the pod itself. The socket of
// a dead keeper is removed last, so that what was killed is gone when containerd is told so.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/ending.h"
#include "core/link/channel.h"
#include "core/link/record_peek.h"
#include "core/os/process.h"
#include "core/shim/answers.h"
#include "core/shim/keeper_client.h"
#include "core/shim/shim.h"

namespace gantry::shim {
namespace {

using Clock = std::chrono::steady_clock;

/// The keeper needs 4 s at most; what is left to containerd's 5 s is for killing. Killing
/// takes as long as the node's init does to reap: without a keeper the dead are its children,
/// and a container's init ends only when each process of its pid namespace has been reaped.
constexpr std::chrono::milliseconds kKeeperAnswers(4200);
constexpr std::chrono::milliseconds kInAll(4700);
constexpr int kBetweenPassesMs = 10;
constexpr size_t kMaxMembers = 4096;

Result<link::Deleted> AskKeeper(const Arguments& arguments, const Surroundings& around,
                                const std::string& bundle) {
  GANTRY_TRY(UniqueFd socket, ConnectKeeper(around.run_dir));
  link::Delete request;
  request.id = arguments.id;
  request.ns = arguments.ns;
  request.bundle = bundle;
  request.grpc_address = arguments.address;
  link::BlockingChannel channel(std::move(socket));
  return channel.Ask<link::Deleted>(request, Clock::now() + kKeeperAnswers);
}

/// Removes the socket that a dead keeper has left for this instance.
void RemoveSocket(const Surroundings& around, const std::string& bundle) {
  constexpr size_t kMaxAddressBytes = 4096;
  const auto text = ReadFile(bundle + "/address", kMaxAddressBytes);
  const std::string prefix = "unix://" + around.run_dir + "/s/";
  const size_t begin = text ? text->find(prefix) : std::string::npos;
  if (begin == std::string::npos) {
    return;
  }
  const std::string name = text->substr(begin + prefix.size()).substr(0, 32);
  if (name.find_first_not_of("0123456789abcdef") == std::string::npos) {
    IgnoreError(RemoveFile(around.run_dir + "/s/" + name), "the next keeper removes it");
  }
}

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// Waits for a process to end; without one, just for the time.
void WaitALittle(const std::optional<link::ProcessRef>& process) {
  pollfd wanted{-1, POLLIN, 0};
  UniqueFd pidfd;
  if (process) {
    if (auto opened = OpenPidfd({process->pid, process->start_time})) {
      pidfd = std::move(*opened);
      wanted.fd = HasEnded(pidfd.get()) ? -1 : pidfd.get();
    }
  }
  poll(&wanted, 1, kBetweenPassesMs);
}

/// What the record says. Nothing where there is none.
std::optional<link::RecordPeek> PeekAt(const std::string& path) {
  const auto record = ReadFile(path, link::kMaxRecordBytes);
  const auto peek = record ? link::PeekRecord(*record) : std::unexpected(record.error());
  return peek ? std::optional(*peek) : std::nullopt;
}

link::LastResort LastResortOf(const link::RecordPeek& peek) {
  link::LastResort last_resort;
  last_resort.cgroup_dirs = peek.cgroup_dirs;
  last_resort.state_dirs = peek.state_dirs;
  last_resort.memory_mounts = peek.memory_mounts;
  last_resort.cleanup = peek.cleanup;
  if (peek.init_pid > 0) {
    last_resort.init = {peek.init_pid, peek.start_time};
  }
  return last_resort;
}

/// How the containers of the pod with this bundle can be ended.
std::vector<link::LastResort> LastResortsOfMembers(const std::string& bundle) {
  const std::string folder = bundle + "/" + link::kMembersFolder;
  std::vector<link::LastResort> last_resorts;
  const auto members = ListDirectory(folder, kMaxMembers);
  for (const std::string& id : members.value_or(std::vector<std::string>())) {
    if (const auto peek = PeekAt(Format("{}/{}", folder, id))) {
      last_resorts.push_back(LastResortOf(*peek));
    }
  }
  return last_resorts;
}

/// containerd logs what a shim prints there.
void Say(const Error& error) {
  const std::string line = "gantry: " + error.message + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void EndAll(const std::vector<link::LastResort>& last_resorts, Clock::time_point deadline) {
  const keeper::CleanupCalls calls = {
      .spawn = [](const link::Command& command) -> Result<os::PendingSpawn> {
        return os::BeginSpawn(keeper::RequestOf(command));
      },
      .failed = Say};
  std::vector<std::pair<const link::LastResort*, keeper::Ending>> open;
  open.reserve(last_resorts.size());
  for (const link::LastResort& last_resort : last_resorts) {
    open.emplace_back(&last_resort, keeper::Ending(calls));
  }
  while (!open.empty() && Clock::now() < deadline) {
    std::erase_if(open, [](auto& one) { return !one.second.GoOn(*one.first); });
    if (!open.empty()) {
      WaitALittle(open.back().first->init);
    }
  }
  // In the time that there is not all has ended: nobody comes again for what can go now.
  for (auto& [last_resort, ending] : open) {
    ending.GiveUp(*last_resort);
  }
}

/// Kills what the bundle's record names, and tells how it ended as far as is known.
link::Deleted KillByRecord(const std::string& bundle, Clock::time_point deadline) {
  link::Deleted deleted{link::kNoPid, os::kKilledStatus, NowNs(), false};
  std::vector<link::LastResort> last_resorts = LastResortsOfMembers(bundle);
  const auto peek = PeekAt(bundle + "/" + link::kRecordFile);
  if (peek) {
    last_resorts.push_back(LastResortOf(*peek));
    if (peek->init_pid > 0) {
      deleted.pid = static_cast<uint32_t>(peek->init_pid);
    }
    if (peek->exit_status) {
      deleted.status = *peek->exit_status;
      deleted.exited_at_ns = peek->exited_at_ns;
    }
  }
  EndAll(last_resorts, deadline);
  return deleted;
}

}  // namespace

Result<std::string> Delete(const Arguments& arguments, const Surroundings& around) {
  const auto started = Clock::now();
  const std::string& bundle = arguments.bundle.empty() ? around.bundle : arguments.bundle;
  const auto answer = AskKeeper(arguments, around, bundle);
  if (answer && answer->known) {
    return DeleteAnswer(*answer);
  }
  const link::Deleted deleted = KillByRecord(bundle, started + kInAll);
  if (!answer) {
    RemoveSocket(around, bundle);
  }
  return DeleteAnswer(deleted);
}

}  // namespace gantry::shim
