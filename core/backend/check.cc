// SPDX-License-Identifier: Apache-2.0
#include "core/backend/check.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <gantry/format.h>

#include "core/log/log.h"

namespace gantry::backend {
namespace {

constexpr uint32_t kMaxStatus = 255;
/// Source: Linux 6.12, include/linux/threads.h, PID_MAX_LIMIT.
constexpr int32_t kMaxPid = 4 * 1024 * 1024;
/// Clocks of guests are not those of the host.
constexpr int64_t kMostAheadNs = 3'600'000'000'000;
constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxCommand = size_t{16} << 10;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool IsOwnDir(const std::string& dir) {
  return dir.starts_with('/') && dir.size() <= kMaxPath && !dir.contains('\0') &&
         std::filesystem::path(dir).lexically_normal().native() == dir && !dir.ends_with('/') &&
         std::ranges::count(dir, '/') >= 2;
}

}  // namespace

ExitStatus CheckExit(std::string_view backend, std::string_view whose, ExitStatus exit) {
  if (exit.status > kMaxStatus) {
    LogError({{"backend", backend}, {"id", whose}}, "it ended with {} by its backend's word: {}",
             exit.status, kMaxStatus);
    exit.status = kMaxStatus;
  }
  const int64_t now = Now();
  if (exit.exited_at_ns <= 0 || exit.exited_at_ns > now + kMostAheadNs) {
    LogError({{"backend", backend}, {"id", whose}},
             "it ended at {} ns since 1970 by its backend's word: now", exit.exited_at_ns);
    exit.exited_at_ns = now;
  }
  return exit;
}

bool CheckPid(std::string_view backend, std::string_view whose, HostPid pid) {
  if (pid.value > 1 && pid.value <= kMaxPid) {
    return true;
  }
  LogError({{"backend", backend}, {"id", whose}},
           "its pid is {} by its backend's word, which none can be", pid.value);
  return false;
}

bool CheckCleanup(std::string_view backend, std::string_view whose, const HostCommand& command) {
  size_t bytes = command.cwd.size();
  bool plain = !command.argv.empty() && command.argv.front().starts_with('/') &&
               command.cwd.starts_with('/') && !command.cwd.contains('\0');
  for (const auto* words : {&command.argv, &command.env}) {
    for (const std::string& word : *words) {
      bytes += word.size() + 1;
      plain = plain && !word.contains('\0');
    }
  }
  if (!plain || bytes > kMaxCommand) {
    LogError({{"backend", backend}, {"id", whose}},
             "its backend's command for its end is not kept: {}",
             plain ? Format("{} bytes, {} are allowed", bytes, kMaxCommand)
                   : "its program and folder are no absolute paths");
    return false;
  }
  return true;
}

std::vector<std::string> CheckStateDirs(std::string_view backend, std::string_view whose,
                                        std::vector<std::string> dirs) {
  std::erase_if(dirs, [&](const std::string& dir) {
    const bool own = IsOwnDir(dir);
    if (!own) {
      LogError({{"backend", backend}, {"id", whose}},
               "'{}' holds its state by its backend's word: no path of its own",
               std::string_view(dir).substr(0, 200));
    }
    return !own;
  });
  return dirs;
}

}  // namespace gantry::backend
