// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/overlay.h>
#include <gantry/toolkit/mount/words.h>
#include <gantry/unique_fd.h>

namespace gantry::mount {
namespace {

constexpr std::string_view kLowerDir = "lowerdir=";

// As fsconfig(2) takes them: each lower directory is an option of its own.
std::vector<std::string> SeparateOptions(const MountOptions& options) {
  std::vector<std::string> separate;
  for (const std::string& option : options.data) {
    if (!option.starts_with(kLowerDir)) {
      separate.push_back(option);
      continue;
    }
    for (const auto& [dir, data_only] :
         SplitLowerDirs(std::string_view(option).substr(kLowerDir.size()))) {
      separate.push_back((data_only ? "datadir+=" : "lowerdir+=") + dir);
    }
  }
  if ((options.flags & MS_RDONLY) != 0) {
    separate.emplace_back("ro");
  }
  return separate;
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
  const FileSystem overlay{"overlay", source.empty() ? "overlay" : source,
                           SeparateOptions(options)};
  GANTRY_TRY(const UniqueFd mounted, MountFileSystem(overlay, AttributesOf(options.flags)));
  return AttachAt(mounted.get(), target);
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
        ::mount(source.c_str(), target.c_str(), "overlay", relative.flags, data.c_str()) != 0) {
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
  if (error.code == Code::kInvalidArgument || error.sys_errno == ENOSYS) {
    error.code = Code::kInvalidArgument;
    error.message += "; " + second.error().message;
  }
  return std::unexpected(std::move(error));
}

}  // namespace gantry::mount
