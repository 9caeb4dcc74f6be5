// SPDX-License-Identifier: Apache-2.0
//
// A whole path is given to the kernel wherever that is possible: it alone knows what a link or a
// `..` means while others change the tree. Only what is missing is made here, one name at a time,
// in a directory that is held by its descriptor.
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>

namespace gantry::container {
namespace {

/// The kernel gives up a look-up while somebody renames directories; as often it is tried again.
constexpr int kMaxRaces = 256;
/// As the kernel follows them. Source: path_resolution(7).
constexpr int kMaxLinks = 40;

enum class Kind { kDirectory, kFile };

uint64_t ResolveFor(Links links) {
  return RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
         (links == Links::kRefuse ? RESOLVE_NO_SYMLINKS : 0U);
}

/// The number of a descriptor, or minus an errno.
int LookUp(int dir, const char* path, uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  for (int race = 0; race < kMaxRaces; ++race) {
    const long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    if (fd >= 0) {
      return static_cast<int>(fd);
    }
    if (errno != EAGAIN && errno != EINTR) {
      return -errno;
    }
  }
  return -EAGAIN;
}

std::unexpected<Error> LookUpError(int error, const std::string& path, Links links) {
  if (error == EAGAIN) {
    return Fail(Code::kAborted, "look up '{}' in the root: its directories keep being moved", path);
  }
  if (error == ELOOP && links == Links::kRefuse) {
    return std::unexpected(Error{Code::kFailedPrecondition, ELOOP,
                                 Format("look up '{}' in the root: a link is on the way", path),
                                 std::string()});
  }
  if (error == ELOOP) {
    return std::unexpected(
        Error{Code::kFailedPrecondition, ELOOP,
              Format("look up '{}' in the root: too many links, or one of /proc's", path),
              std::string()});
  }
  return FailErrno(error, "look up '{}' in the root", path);
}

std::vector<std::string> NamesOf(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0 && path.substr(0, slash) != ".") {
      names.emplace_back(path.substr(0, slash));
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return names;
}

/// Where the link leads; nothing where it is none.
std::optional<std::string> LinkAt(int dir, const std::string& name) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = readlinkat(dir, name.c_str(), text.data(), text.size());
  if (size <= 0) {
    return std::nullopt;
  }
  return std::string(text.data(), static_cast<size_t>(size));
}

Result<UniqueFd> Checked(UniqueFd found, Kind kind, const std::string& path) {
  struct stat info{};
  if (fstat(found.get(), &info) != 0) {
    return FailErrno(errno, "look at '{}' in the root", path);
  }
  if (S_ISDIR(info.st_mode) != (kind == Kind::kDirectory)) {
    return Fail(Code::kFailedPrecondition, "look at '{}' in the root: it is {} directory", path,
                kind == Kind::kDirectory ? "no" : "a");
  }
  return found;
}

/// One path that is being made. What a link to nothing names takes its place in the path.
class PathInRoot {
 public:
  PathInRoot(int root, const std::string& path, Kind kind, mode_t mode, Links links)
      : root_(root), path_(path), kind_(kind), mode_(mode), links_(links), names_(NamesOf(path)) {}

  Result<UniqueFd> Make() {
    UniqueFd dir;
    GANTRY_TRY(dir, OpenInRoot(root_, "/", links_));
    std::string done;
    for (size_t i = 0; i < names_.size();) {
      const std::string next = Format("{}/{}", done, names_[i]);
      UniqueFd found(LookUpHere(next));
      if (!found) {
        GANTRY_TRY(const Step step, MakeOne(dir.get(), i));
        if (step == Step::kAnew) {
          i = 0;
          done.clear();
          GANTRY_TRY(dir, OpenInRoot(root_, "/", links_));
          continue;
        }
        if (step == Step::kAgain) {
          continue;
        }
        GANTRY_TRY(found, Made(dir.get(), names_[i]));
      }
      dir = std::move(found);
      done = next;
      ++i;
    }
    return Checked(std::move(dir), kind_, path_);
  }

 private:
  enum class Step { kMade, kAgain, kAnew };

  int LookUpHere(const std::string& path) {
    const int found = LookUp(root_, path.c_str(), ResolveFor(links_));
    error_ = found < 0 ? -found : 0;
    return found;
  }

  /// What is missing: the name number `i`, in `dir`.
  Result<Step> MakeOne(int dir, size_t i) {
    if (error_ != ENOENT) {
      return LookUpError(error_, path_, links_);
    }
    const std::string& name = names_[i];
    if (Create(dir, name, i + 1 == names_.size())) {
      return Step::kMade;
    }
    if (errno != EEXIST) {
      return FailErrno(errno, "make '{}' in the root", path_);
    }
    if (++races_ > kMaxRaces) {
      return LookUpError(EAGAIN, path_, links_);
    }
    const std::optional<std::string> link = LinkAt(dir, name);
    if (!link) {
      return Step::kAgain;
    }
    if (links_ == Links::kRefuse || ++followed_ > kMaxLinks) {
      return LookUpError(ELOOP, path_, links_);
    }
    std::vector<std::string> names = NamesOf(*link);
    if (!link->starts_with('/')) {
      names.insert(names.begin(), names_.begin(), names_.begin() + static_cast<ptrdiff_t>(i));
    }
    names.insert(names.end(), names_.begin() + static_cast<ptrdiff_t>(i) + 1, names_.end());
    names_ = std::move(names);
    return Step::kAnew;
  }

  bool Create(int dir, const std::string& name, bool last) const {
    constexpr mode_t kDirectoryMode = 0755;
    if (!last || kind_ == Kind::kDirectory) {
      const mode_t mode = kind_ == Kind::kDirectory ? mode_ : kDirectoryMode;
      return mkdirat(dir, name.c_str(), mode) == 0;
    }
    const UniqueFd file(
        openat(dir, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_));
    return static_cast<bool>(file);
  }

  Result<UniqueFd> Made(int dir, const std::string& name) const {
    const int found = LookUp(dir, name.c_str(), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (found < 0) {
      return LookUpError(-found, path_, Links::kRefuse);
    }
    return UniqueFd(found);
  }

  int root_;
  const std::string& path_;
  Kind kind_;
  mode_t mode_;
  Links links_;
  std::vector<std::string> names_;
  int error_ = 0;
  int races_ = 0;
  int followed_ = 0;
};

Status CheckPath(const std::string& path) {
  if (path.contains('\0')) {
    return Fail(Code::kInvalidArgument, "look up '{}' in the root: a zero byte is in it",
                path.c_str());
  }
  return {};
}

}  // namespace

Result<UniqueFd> OpenInRoot(int root, const std::string& path, Links links) {
  GANTRY_CHECK_OK(CheckPath(path));
  const int found = LookUp(root, path.empty() ? "." : path.c_str(), ResolveFor(links));
  if (found < 0) {
    return LookUpError(-found, path, links);
  }
  return UniqueFd(found);
}

Result<UniqueFd> MakeDirectoryInRoot(int root, const std::string& path, mode_t mode, Links links) {
  GANTRY_CHECK_OK(CheckPath(path));
  return PathInRoot(root, path, Kind::kDirectory, mode, links).Make();
}

Result<UniqueFd> MakeFileInRoot(int root, const std::string& path, mode_t mode, Links links) {
  GANTRY_CHECK_OK(CheckPath(path));
  return PathInRoot(root, path, Kind::kFile, mode, links).Make();
}

}  // namespace gantry::container
