// SPDX-License-Identifier: Apache-2.0
#include "core/os/overlay.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include <gantry/unique_fd.h>

#include "core/os/idmap.h"

namespace gantry::os {
namespace {

constexpr std::string_view kLowerDir = "lowerdir=";

// What the kernel says about a failure, without its level letter.
std::string KernelLog(int context) {
  std::string log;
  std::array<char, 512> line{};
  for (ssize_t got = 0; (got = read(context, line.data(), line.size())) > 0;) {
    const std::string_view text(line.data(), static_cast<size_t>(got));
    log += log.empty() ? "" : "; ";
    log += text.size() > 2 && text[1] == ' ' ? text.substr(2) : text;
    while (log.ends_with('\n')) {
      log.pop_back();
    }
  }
  return log;
}

std::unexpected<Error> FailContext(int context, std::string_view what) {
  Error error = ErrnoError(errno, what);
  error.detail = KernelLog(context);
  if (!error.detail.empty()) {
    error.message += " (" + error.detail + ")";
  }
  return std::unexpected(std::move(error));
}

Status SetString(int context, const std::string& key, const std::string& value) {
  if (fsconfig(context, FSCONFIG_SET_STRING, key.c_str(), value.c_str(), 0) != 0) {
    return FailContext(context, "set overlay option '" + key + "=" + value + "'");
  }
  return {};
}

Status SetLowerDirs(int context, std::string_view value) {
  for (const auto& [dir, data_only] : SplitLowerDirs(value)) {
    GANTRY_CHECK_OK(SetString(context, data_only ? "datadir+" : "lowerdir+", dir));
  }
  return {};
}

Status SetOption(int context, const std::string& option) {
  if (option.starts_with(kLowerDir)) {
    return SetLowerDirs(context, std::string_view(option).substr(kLowerDir.size()));
  }
  const size_t equals = option.find('=');
  if (equals != option.npos) {
    return SetString(context, option.substr(0, equals), option.substr(equals + 1));
  }
  if (fsconfig(context, FSCONFIG_SET_FLAG, option.c_str(), nullptr, 0) != 0) {
    return FailContext(context, "set overlay option '" + option + "'");
  }
  return {};
}

unsigned AttributesOf(unsigned long flags) {
  unsigned attributes = 0;
  const auto map = [&](unsigned long flag, unsigned attribute) {
    attributes |= (flags & flag) != 0 ? attribute : 0U;
  };
  map(MS_RDONLY, MOUNT_ATTR_RDONLY);
  map(MS_NOSUID, MOUNT_ATTR_NOSUID);
  map(MS_NODEV, MOUNT_ATTR_NODEV);
  map(MS_NOEXEC, MOUNT_ATTR_NOEXEC);
  map(MS_NODIRATIME, MOUNT_ATTR_NODIRATIME);
  map(MS_NOATIME, MOUNT_ATTR_NOATIME);
  map(MS_STRICTATIME, MOUNT_ATTR_STRICTATIME);
  return attributes;
}

Result<MountOptions> Shortened(const MountOptions& options, const std::string& common) {
  MountOptions out = options;
  for (std::string& word : out.data) {
    if (!word.starts_with(kLowerDir)) {
      continue;
    }
    std::string relative(kLowerDir);
    for (const auto& [dir, data_only] : SplitLowerDirs(word.substr(kLowerDir.size()))) {
      relative += relative.size() == kLowerDir.size() ? "" : (data_only ? "::" : ":");
      relative += EscapeLowerDir(dir.substr(common.size()));
    }
    word = std::move(relative);
  }
  if (out.JoinedData().size() >= static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    return Fail(Code::kInvalidArgument, "overlay options: too long, {} bytes",
                out.JoinedData().size());
  }
  return out;
}

std::vector<std::string> LowerDirs(const MountOptions& options) {
  std::vector<std::string> dirs;
  for (const std::string& word : options.data) {
    if (word.starts_with(kLowerDir)) {
      for (auto& [dir, data_only] : SplitLowerDirs(word.substr(kLowerDir.size()))) {
        dirs.push_back(std::move(dir));
      }
    }
  }
  return dirs;
}

}  // namespace

std::vector<std::pair<std::string, bool>> SplitLowerDirs(std::string_view value) {
  std::vector<std::pair<std::string, bool>> dirs;
  std::string dir;
  bool data_only = false;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) {
      dir.push_back(value[++i]);
    } else if (value[i] == ':') {
      if (!dir.empty()) {
        dirs.emplace_back(std::exchange(dir, {}), data_only);
      }
      data_only = i + 1 < value.size() && value[i + 1] == ':';
      i += data_only ? 1 : 0;
    } else {
      dir.push_back(value[i]);
    }
  }
  if (!dir.empty()) {
    dirs.emplace_back(std::move(dir), data_only);
  }
  return dirs;
}

std::string EscapeLowerDir(std::string_view dir) {
  std::string escaped;
  for (const char c : dir) {
    escaped += c == ':' || c == '\\' || c == ',' ? std::string{'\\', c} : std::string{c};
  }
  return escaped;
}

std::string CommonDirectory(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return {};
  }
  std::string common = paths.front();
  for (const std::string& path : paths) {
    const auto stop = std::ranges::mismatch(common, path).in1;
    common.erase(stop, common.end());
  }
  common.erase(common.rfind('/') == common.npos ? 0 : common.rfind('/') + 1);
  // A path that is the prefix itself would become an empty name.
  const bool whole = std::ranges::find(paths, common) != paths.end();
  return common == "/" || whole ? std::string() : common;
}

Status MountOverlayByFsopen(const std::string& source, const std::string& target,
                            const MountOptions& options) {
  const UniqueFd context(fsopen("overlay", FSOPEN_CLOEXEC));
  if (!context) {
    return FailErrno(errno, "open an overlay context");
  }
  GANTRY_CHECK_OK(SetString(context.get(), "source", source.empty() ? "overlay" : source));
  for (const std::string& option : options.data) {
    GANTRY_CHECK_OK(SetOption(context.get(), option));
  }
  if ((options.flags & MS_RDONLY) != 0) {
    GANTRY_CHECK_OK(SetOption(context.get(), "ro"));
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return FailContext(context.get(), "create the overlay");
  }
  const UniqueFd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, AttributesOf(options.flags)));
  if (!mount) {
    return FailContext(context.get(), "mount the overlay");
  }
  return AttachMount(mount.get(), target);
}

Status MountOverlayRelative(const std::string& source, const std::string& target,
                            const MountOptions& options) {
  const std::string common = CommonDirectory(LowerDirs(options));
  GANTRY_TRY(const MountOptions relative, Shortened(options, common));
  const std::string data = relative.JoinedData();
  int error = 0;
  // The working directory belongs to the process but for a thread that says
  // otherwise; such a thread is thrown away.
  std::thread([&] {
    if (unshare(CLONE_FS) != 0 || (!common.empty() && chdir(common.c_str()) != 0) ||
        mount(source.c_str(), target.c_str(), "overlay", relative.flags, data.c_str()) != 0) {
      error = errno;
    }
  }).join();
  if (error != 0) {
    return FailErrno(error, "mount the overlay from within '{}'", common);
  }
  return {};
}

Status MountLongOverlay(const std::string& source, const std::string& target,
                        const MountOptions& options) {
  Status first = MountOverlayByFsopen(source, target, options);
  if (first) {
    return first;
  }
  Status second = MountOverlayRelative(source, target, options);
  if (second) {
    return second;
  }
  if (second.error().code != Code::kInvalidArgument) {
    return second;
  }
  // Too long for the old way; so what the new one said counts.
  Error error = std::move(first).error();
  if (error.sys_errno == EINVAL || error.sys_errno == ENOSYS) {
    error.code = Code::kInvalidArgument;
    error.message += "; " + second.error().message;
  }
  return std::unexpected(std::move(error));
}

}  // namespace gantry::os
