// SPDX-License-Identifier: Apache-2.0
//
// Reading /proc/self/mountinfo. A line, from proc_pid_mountinfo(5):
//
//     36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//     id parent dev root path options [tags...] - type source super_options
//
// Space, tab, newline and backslash in a word are written as `\` and three
// octal digits.
#include <charconv>
#include <optional>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>

namespace gantry::mount {
namespace {

// A node with thousands of mounts has some hundred bytes for each.
constexpr size_t kMaxMountInfo = 256 << 20;

std::string_view NextWord(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view word = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

std::string Unescape(std::string_view word) {
  std::string out;
  out.reserve(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 3 < word.size() && IsOctal(word[i + 1]) && IsOctal(word[i + 2]) &&
        IsOctal(word[i + 3])) {
      const int value = (word[i + 1] - '0') * 64 + (word[i + 2] - '0') * 8 + (word[i + 3] - '0');
      out.push_back(static_cast<char>(value));
      i += 3;
    } else {
      out.push_back(word[i]);
    }
  }
  return out;
}

std::optional<uint64_t> Number(std::string_view word) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || stop != word.data() + word.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<MountPoint> ParseLine(std::string_view line) {
  const auto id = Number(NextWord(line, ' '));
  const auto parent = Number(NextWord(line, ' '));
  if (!id || !parent) {
    return std::nullopt;
  }
  NextWord(line, ' ');  // The device's numbers.
  MountPoint mount;
  mount.id = *id;
  mount.parent_id = *parent;
  mount.root = Unescape(NextWord(line, ' '));
  mount.path = Unescape(NextWord(line, ' '));
  mount.options = NextWord(line, ' ');
  while (!line.empty() && NextWord(line, ' ') != "-") {
  }
  mount.type = Unescape(NextWord(line, ' '));
  mount.source = Unescape(NextWord(line, ' '));
  mount.super_options = line;
  if (mount.path.empty() || mount.type.empty()) {
    return std::nullopt;
  }
  return mount;
}

bool IsBelow(std::string_view path, std::string_view top) {
  return top == "/" || path == top ||
         (path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/');
}

}  // namespace

std::vector<MountPoint> ParseMountInfo(std::string_view text) {
  std::vector<MountPoint> mounts;
  while (!text.empty()) {
    if (auto mount = ParseLine(NextWord(text, '\n'))) {
      mounts.push_back(std::move(*mount));
    }
  }
  return mounts;
}

Result<std::vector<MountPoint>> ListMounts(std::string_view below) {
  GANTRY_TRY(const std::string text, ReadFile("/proc/self/mountinfo", kMaxMountInfo));
  std::vector<MountPoint> mounts = ParseMountInfo(text);
  std::erase_if(mounts, [&](const MountPoint& mount) { return !IsBelow(mount.path, below); });
  return mounts;
}

}  // namespace gantry::mount
