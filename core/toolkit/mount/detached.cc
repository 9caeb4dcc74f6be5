// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/format.h>
#include <gantry/toolkit/mount/detached.h>

namespace gantry::mount {
namespace {

/// fsconfig(2) takes no longer value. Source: Linux 6.18, fs/fsopen.c.
constexpr size_t kMaxValue = 255;

/// What the kernel has to say of a context after a call that failed; empty: nothing.
std::string KernelSays(int context) {
  std::array<char, 512> text{};
  std::string said;
  for (int i = 0; i < 8; ++i) {
    const ssize_t size = read(context, text.data(), text.size());
    if (size <= 0) {
      break;
    }
    std::string_view line(text.data(), static_cast<size_t>(size));
    // A letter for how bad it is, then a space.
    if (line.starts_with("e ")) {
      line.remove_prefix(2);
      while (line.ends_with('\n')) {
        line.remove_suffix(1);
      }
      said = line;
    }
  }
  return said;
}

std::unexpected<Error> ContextError(int context, int error, const std::string& what) {
  const std::string said = KernelSays(context);
  return FailErrno(error, "{}", said.empty() ? what : Format("{}: {}", what, said));
}

Status Configure(int context, const FileSystem& file_system) {
  if (!file_system.source.empty() &&
      fsconfig(context, FSCONFIG_SET_STRING, "source", file_system.source.c_str(), 0) != 0) {
    return ContextError(context, errno, Format("source '{}'", file_system.source));
  }
  for (const std::string& option : file_system.options) {
    const size_t sign = option.find('=');
    const std::string key = option.substr(0, sign);
    const bool word = sign == std::string::npos;
    const char* value = word ? nullptr : option.c_str() + sign + 1;
    if (!word && option.size() - sign - 1 > kMaxValue) {
      return Fail(Code::kInvalidArgument, "option '{}': its value is longer than {} bytes", key,
                  kMaxValue);
    }
    if (fsconfig(context, word ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, key.c_str(), value, 0) !=
        0) {
      return ContextError(context, errno, Format("option '{}'", option));
    }
  }
  return {};
}

}  // namespace

Result<UniqueFd> CloneTree(int dir, const std::string& path, bool recursive) {
  UniqueFd tree(open_tree(dir, path.c_str(),
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0U)));
  if (!tree) {
    return FailErrno(errno, "take the mount of '{}'", path);
  }
  return tree;
}

Result<UniqueFd> CloneTreeOf(int opened, bool recursive) {
  UniqueFd tree(open_tree(
      opened, "",
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U)));
  if (!tree) {
    return FailErrno(errno, "take the mount of it");
  }
  return tree;
}

Status SetAttributes(int mount, const Attributes& attributes, bool recursive) {
  if (attributes.empty()) {
    return {};
  }
  mount_attr values{};
  values.attr_set = attributes.set;
  values.attr_clr = attributes.clear;
  if (mount_setattr(mount, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U), &values,
                    sizeof(values)) != 0) {
    return FailErrno(errno, "set the attributes of {}",
                     recursive ? "the mount and those below" : "the mount");
  }
  return {};
}

Status SetPropagation(int mount, const std::vector<Propagation>& propagation) {
  for (const auto& [type, recursive] : propagation) {
    if (type == 0) {
      continue;
    }
    mount_attr values{};
    values.propagation = type;
    if (mount_setattr(mount, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U), &values,
                      sizeof(values)) != 0) {
      return FailErrno(errno, "set the propagation of the mount");
    }
  }
  return {};
}

Status MapIds(int mount, int user_namespace, bool recursive) {
  mount_attr values{};
  values.attr_set = MOUNT_ATTR_IDMAP;
  values.userns_fd = static_cast<__u64>(user_namespace);
  if (mount_setattr(mount, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U), &values,
                    sizeof(values)) != 0) {
    return FailErrno(errno, "map the ids of the mount{}",
                     errno == EINVAL ? " (can its file system?)" : "");
  }
  return {};
}

Result<UniqueFd> MountFileSystem(const FileSystem& file_system, uint64_t attributes) {
  const UniqueFd context(fsopen(file_system.type.c_str(), FSOPEN_CLOEXEC));
  if (!context) {
    return FailErrno(errno, "file system '{}'{}", file_system.type,
                     errno == ENODEV ? ": this kernel has none of this name" : "");
  }
  GANTRY_CHECK_OK(Configure(context.get(), file_system));
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return ContextError(context.get(), errno, Format("make file system '{}'", file_system.type));
  }
  UniqueFd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes)));
  if (!mount) {
    return ContextError(context.get(), errno, Format("mount file system '{}'", file_system.type));
  }
  return mount;
}

Status Reconfigure(int mount, const FileSystem& file_system) {
  const UniqueFd context(fspick(mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  if (!context) {
    return FailErrno(errno, "change the file system");
  }
  GANTRY_CHECK_OK(Configure(context.get(), file_system));
  if (fsconfig(context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0) {
    return ContextError(context.get(), errno, "change the file system");
  }
  return {};
}

Status Attach(int mount, int target) {
  if (move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return FailErrno(errno, "put the mount in its place");
  }
  return {};
}

Status AttachAt(int mount, const std::string& target) {
  if (move_mount(mount, "", AT_FDCWD, target.c_str(),
                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) != 0) {
    return FailErrno(errno, "put the mount on '{}'", target);
  }
  return {};
}

}  // namespace gantry::mount
