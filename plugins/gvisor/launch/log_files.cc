// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/protowire.h>

namespace gantry::gvisor {
namespace {

constexpr std::string_view kSandbox = "%ID%";
constexpr std::string_view kContainer = "%CID%";

void ReplaceAll(std::string& text, std::string_view name, std::string_view value) {
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) {
    text.replace(at, name.size(), value);
  }
}

/// Local time, as in the names of runsc's own files: 20060102-150405.000000.
std::string Timestamp(std::chrono::system_clock::time_point at) {
  constexpr int64_t kMicrosPerSecond = 1'000'000;
  const int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  const time_t seconds = micros / kMicrosPerSecond;
  tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  const size_t size = strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
  return Format("{}.{:06}", std::string_view(text.data(), size), micros % kMicrosPerSecond);
}

/// Those above the file. One that cannot be made shows when the file is opened.
void MakeFolders(const std::string& path) {
  constexpr mode_t kMode = 0755;
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), kMode);
  }
}

}  // namespace

Status LogFlags::Check() const {
  for (const auto& [flag, path] : {std::pair("debug-log", &debug), std::pair("panic-log", &panic),
                                   std::pair("coverage-report", &coverage)}) {
    if (!path->empty() && !path->starts_with('/')) {
      return Fail(Code::kInvalidArgument,
                  "check option 'runsc_config.{}': '{}': must be an absolute path", flag, *path);
    }
  }
  return {};
}

bool LogFlags::Debugs(std::string_view command) const {
  const bool negated = commands.starts_with('!');
  const std::string list = "," + commands.substr(negated ? 1 : 0) + ",";
  return commands.empty() || list.contains(Format(",{},", command)) != negated;
}

bool LogFlags::NamePods() const {
  const auto names = [](const std::string& pattern) {
    return pattern.contains(kSandbox) || pattern.contains(kContainer);
  };
  return debug_to_user || names(debug) || names(panic) || names(coverage);
}

std::string LogFilePath(std::string_view pattern, const LogOwner& owner, std::string_view command) {
  std::string path(pattern);
  if (path.ends_with('/')) {
    path += "runsc.log.%TIMESTAMP%.%COMMAND%.txt";
  }
  ReplaceAll(path, "%TIMESTAMP%", Timestamp(owner.started));
  ReplaceAll(path, "%COMMAND%", command);
  // Of gVisor's own tests.
  ReplaceAll(path, "%TEST%", "");
  ReplaceAll(path, kSandbox, owner.sandbox);
  ReplaceAll(path, kContainer, owner.container);
  return path;
}

Result<UniqueFd> OpenLogFile(std::string_view flag, std::string_view pattern, const LogOwner& owner,
                             std::string_view command) {
  if (pattern.empty()) {
    return UniqueFd();
  }
  const std::string path = LogFilePath(pattern, owner, command);
  MakeFolders(path);
  // A fifo without a reader is refused, not waited for.
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
  constexpr mode_t kMode = 0644;
  UniqueFd file(open(path.c_str(), kHow | O_NONBLOCK, kMode));
  if (!file || fcntl(file.get(), F_SETFL, kHow & O_APPEND) != 0) {
    return FailErrno(errno, "open the log '{}' ({})", path, flag);
  }
  return file;
}

std::string UserLogIn(const std::string& folder) {
  return folder.starts_with('/') ? folder + "/gvisor.log" : std::string();
}

std::string LogFolderOf(std::string_view pod_config) {
  constexpr uint32_t kLogDirectory = 3;
  ProtoReader in(pod_config);
  std::string folder;
  while (in.Next()) {
    if (in.field() == kLogDirectory) {
      folder = in.text();
    }
  }
  return folder;
}

}  // namespace gantry::gvisor
