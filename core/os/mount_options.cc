// SPDX-License-Identifier: Apache-2.0
#include "core/os/mount_options.h"

#include <sys/mount.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>

namespace gantry::os {
namespace {

struct Word {
  std::string_view name;
  unsigned long set = 0;
  unsigned long clear = 0;
};

// The three ways to record access times exclude each other.
constexpr unsigned long kAtime = MS_NOATIME | MS_RELATIME | MS_STRICTATIME;

constexpr auto kFlagWords = std::to_array<Word>({
    {"async", 0, MS_SYNCHRONOUS},
    {"atime", 0, MS_NOATIME},
    {"bind", MS_BIND, 0},
    {"defaults", 0, 0},
    {"dev", 0, MS_NODEV},
    {"diratime", 0, MS_NODIRATIME},
    {"dirsync", MS_DIRSYNC, 0},
    {"exec", 0, MS_NOEXEC},
    {"lazytime", MS_LAZYTIME, 0},
    {"mand", MS_MANDLOCK, 0},
    {"noatime", MS_NOATIME, kAtime},
    {"nodev", MS_NODEV, 0},
    {"nodiratime", MS_NODIRATIME, 0},
    {"noexec", MS_NOEXEC, 0},
    {"nolazytime", 0, MS_LAZYTIME},
    {"nomand", 0, MS_MANDLOCK},
    {"norelatime", 0, MS_RELATIME},
    {"nostrictatime", 0, MS_STRICTATIME},
    {"nosuid", MS_NOSUID, 0},
    {"rbind", MS_BIND | MS_REC, 0},
    {"relatime", MS_RELATIME, kAtime},
    {"remount", MS_REMOUNT, 0},
    {"ro", MS_RDONLY, 0},
    {"rw", 0, MS_RDONLY},
    {"silent", MS_SILENT, 0},
    {"strictatime", MS_STRICTATIME, kAtime},
    {"suid", 0, MS_NOSUID},
    {"sync", MS_SYNCHRONOUS, 0},
});

constexpr auto kPropagationWords = std::to_array<Word>({
    {"private", MS_PRIVATE, 0},
    {"rprivate", MS_PRIVATE | MS_REC, 0},
    {"shared", MS_SHARED, 0},
    {"rshared", MS_SHARED | MS_REC, 0},
    {"slave", MS_SLAVE, 0},
    {"rslave", MS_SLAVE | MS_REC, 0},
    {"unbindable", MS_UNBINDABLE, 0},
    {"runbindable", MS_UNBINDABLE | MS_REC, 0},
});

template <size_t N>
const Word* Find(const std::array<Word, N>& words, std::string_view name) {
  const auto found = std::ranges::find(words, name, &Word::name);
  return found == words.end() ? nullptr : &*found;
}

void Apply(const std::string& option, MountOptions& out) {
  if (const Word* flag = Find(kFlagWords, option)) {
    out.flags = (out.flags & ~flag->clear) | flag->set;
  } else if (const Word* propagation = Find(kPropagationWords, option)) {
    out.propagation = propagation->set;
  } else if (option == "loop") {
    out.loop = true;
  } else if (option == "direct-io") {
    out.direct_io = true;
  } else if (option.starts_with("uidmap=")) {
    out.uidmap = option.substr(7);
  } else if (option.starts_with("gidmap=")) {
    out.gidmap = option.substr(7);
  } else if (!option.empty()) {
    out.data.push_back(option);
  }
}

Result<uint32_t> ParseId(std::string_view text, std::string_view whole) {
  uint32_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return Fail(Code::kInvalidArgument, "id mapping '{}': not of the form inside:outside:count",
                whole);
  }
  return value;
}

}  // namespace

std::string MountOptions::JoinedData() const {
  std::string joined;
  for (const std::string& word : data) {
    joined += joined.empty() ? word : "," + word;
  }
  return joined;
}

Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options) {
  MountOptions out;
  for (const std::string& option : options) {
    if (option.starts_with("X-containerd.")) {
      return Fail(Code::kInvalidArgument,
                  "mount option '{}': meant for containerd's mount manager, which did not take it",
                  option);
    }
    Apply(option, out);
  }
  if (out.uidmap.empty() != out.gidmap.empty()) {
    return Fail(Code::kInvalidArgument, "mount option '{}': uidmap and gidmap go together",
                out.uidmap.empty() ? "gidmap=" + out.gidmap : "uidmap=" + out.uidmap);
  }
  if (out.direct_io && !out.loop) {
    // Then it is a word of the file system's.
    out.direct_io = false;
    out.data.emplace_back("direct-io");
  }
  return out;
}

Result<std::vector<IdRange>> ParseIdRanges(std::string_view text) {
  std::vector<IdRange> ranges;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view range(part);
    const size_t first = range.find(':');
    const size_t second = first == range.npos ? range.npos : range.find(':', first + 1);
    if (second == range.npos) {
      return Fail(Code::kInvalidArgument, "id mapping '{}': not of the form inside:outside:count",
                  text);
    }
    IdRange parsed;
    GANTRY_TRY(parsed.inside, ParseId(range.substr(0, first), text));
    GANTRY_TRY(parsed.outside, ParseId(range.substr(first + 1, second - first - 1), text));
    GANTRY_TRY(parsed.count, ParseId(range.substr(second + 1), text));
    ranges.push_back(parsed);
  }
  if (ranges.empty()) {
    return Fail(Code::kInvalidArgument, "id mapping '{}': empty", text);
  }
  return ranges;
}

}  // namespace gantry::os
