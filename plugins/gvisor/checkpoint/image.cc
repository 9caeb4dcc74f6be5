// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/checkpoint/image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kImageMagic = "gVisorSF";
/// The specs of all containers are in it.
constexpr size_t kMaxTableBytes = size_t{16} << 20;
/// Of an ELF file: the segments with their sizes, and the notes with the build id.
constexpr size_t kElfHeadBytes = 4096;
/// Each image of criu's has it.
constexpr const char* kCriuFile = "inventory.img";

std::string PathOf(const std::string& directory, const char* name) {
  return directory + "/" + name;
}

/// Fewer only at the end of the file.
Result<std::string> ReadAt(const UniqueFd& file, size_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got =
        pread(file.get(), text.data() + have, bytes - have, static_cast<off_t>(offset + have));
    if (got < 0) {
      return FailErrno(errno, "read a file of a checkpoint, or its program");
    }
    if (got == 0) {
      break;
    }
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

Result<UniqueFd> OpenFile(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    return FailErrno(errno, "open the checkpoint's file '{}'", path);
  }
  struct stat status{};
  if (fstat(file.get(), &status) != 0) {
    return FailErrno(errno, "look at the checkpoint's file '{}'", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(Code::kInvalidArgument, "open the checkpoint's file '{}': it is no regular file",
                path);
  }
  return file;
}

std::unexpected<Error> NotUnderstood(const Image& image) {
  return Fail(Code::kInvalidArgument, "read the checkpoint's file '{}': it is no state of gVisor's",
              PathOf(image.directory, kImageFiles[kStateFile]));
}

std::string TextIn(const Json& table, const char* name) {
  const auto found = table.find(name);
  return found != table.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::array<int, kImageFiles.size()> Image::Fds() const {
  std::array<int, kImageFiles.size()> fds{};
  std::ranges::transform(files, fds.begin(), &UniqueFd::get);
  return fds;
}

Result<Image> MakeImage(const std::string& directory) {
  GANTRY_CHECK_OK(RemoveImage(directory));
  constexpr mode_t kMode = 0600;
  Image image{.directory = directory, .files = {}};
  for (size_t i = 0; i < kImageFiles.size(); ++i) {
    const std::string path = PathOf(directory, kImageFiles[i]);
    image.files[i] =
        UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!image.files[i]) {
      const int error = errno;
      IgnoreError(RemoveImage(directory), "the first error counts");
      return FailErrno(error, "make the checkpoint's file '{}'", path);
    }
  }
  return image;
}

Status RemoveImage(const std::string& directory) {
  for (const char* name : kImageFiles) {
    GANTRY_CHECK_OK(RemoveFile(PathOf(directory, name)));
  }
  return {};
}

Result<Image> OpenImage(const std::string& directory) {
  struct stat status{};
  if (stat(directory.c_str(), &status) != 0) {
    return FailErrno(errno, "open the checkpoint '{}'", directory);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Fail(Code::kInvalidArgument, "open the checkpoint '{}': it is no directory", directory);
  }
  if (!Exists(PathOf(directory, kImageFiles[kStateFile])) && Exists(PathOf(directory, kCriuFile))) {
    return Fail(Code::kInvalidArgument,
                "open the checkpoint '{}': criu has made it, of a container of runc's or crun's; "
                "gVisor restores its own only",
                directory);
  }
  Image image{.directory = directory, .files = {}};
  for (size_t i = 0; i < kImageFiles.size(); ++i) {
    GANTRY_TRY(image.files[i], OpenFile(PathOf(directory, kImageFiles[i])));
  }
  return image;
}

Result<ImageInfo> ReadImageInfo(const Image& image) {
  constexpr size_t kLengthBytes = 8;
  const UniqueFd& file = image.files[kStateFile];
  GANTRY_TRY(const std::string head, ReadAt(file, 0, kImageMagic.size() + kLengthBytes));
  if (head.size() != kImageMagic.size() + kLengthBytes || !head.starts_with(kImageMagic)) {
    return NotUnderstood(image);
  }
  uint64_t length = 0;
  for (const char byte : std::string_view(head).substr(kImageMagic.size())) {
    length = length << 8 | static_cast<uint8_t>(byte);
  }
  if (length > kMaxTableBytes) {
    return NotUnderstood(image);
  }
  GANTRY_TRY(const std::string text, ReadAt(file, head.size(), length));
  const Json table = ReadJson(text);
  if (!table.is_object()) {
    return NotUnderstood(image);
  }
  ImageInfo info;
  info.build = TextIn(table, kBuildKey);
  const std::string count = TextIn(table, "container_count");
  std::from_chars(count.data(), count.data() + count.size(), info.containers);
  return info;
}

Result<std::string> BuildOf(const UniqueFd& program) {
  // It may be open by its path only.
  const std::string path = Format("/proc/self/fd/{}", program.get());
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0) {
    return FailErrno(errno, "open the program that a checkpoint is made with");
  }
  GANTRY_TRY(const std::string head, ReadAt(file, 0, kElfHeadBytes));
  return Format("{:016x}-{}", Fingerprint(head), status.st_size);
}

}  // namespace gantry::gvisor
