// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>

#include <algorithm>
#include <array>

#include <gantry/toolkit/mount/words.h>

namespace gantry::mount {
namespace {

using enum Word::Of;

// The ways to record access times exclude each other.
constexpr unsigned long kTimes = MS_NOATIME | MS_RELATIME | MS_STRICTATIME;
constexpr uint64_t kAtime = MOUNT_ATTR__ATIME;

constexpr auto kWords = std::to_array<Word>({
    {"async", kFileSystem, 0, MS_SYNCHRONOUS, {}},
    {"atime", kMount, 0, MS_NOATIME, {0, kAtime}},
    {"bind", kCall, MS_BIND, 0, {}},
    {"defaults", kCall, 0, 0, {}},
    {"dev", kMount, 0, MS_NODEV, {0, MOUNT_ATTR_NODEV}},
    {"diratime", kMount, 0, MS_NODIRATIME, {0, MOUNT_ATTR_NODIRATIME}},
    {"dirsync", kFileSystem, MS_DIRSYNC, 0, {}},
    {"exec", kMount, 0, MS_NOEXEC, {0, MOUNT_ATTR_NOEXEC}},
    {"lazytime", kFileSystem, MS_LAZYTIME, 0, {}},
    {"loud", kCall, 0, MS_SILENT, {}},
    {"mand", kFileSystem, MS_MANDLOCK, 0, {}},
    {"noatime", kMount, MS_NOATIME, kTimes, {MOUNT_ATTR_NOATIME, kAtime}},
    {"nodev", kMount, MS_NODEV, 0, {MOUNT_ATTR_NODEV, 0}},
    {"nodiratime", kMount, MS_NODIRATIME, 0, {MOUNT_ATTR_NODIRATIME, 0}},
    {"noexec", kMount, MS_NOEXEC, 0, {MOUNT_ATTR_NOEXEC, 0}},
    {"nolazytime", kFileSystem, 0, MS_LAZYTIME, {}},
    {"nomand", kFileSystem, 0, MS_MANDLOCK, {}},
    {"norelatime", kMount, 0, MS_RELATIME, {0, kAtime}},
    {"nostrictatime", kMount, 0, MS_STRICTATIME, {0, kAtime}},
    {"nosuid", kMount, MS_NOSUID, 0, {MOUNT_ATTR_NOSUID, 0}},
    {"nosymfollow", kMount, MS_NOSYMFOLLOW, 0, {MOUNT_ATTR_NOSYMFOLLOW, 0}},
    {"rbind", kCall, MS_BIND | MS_REC, 0, {}},
    {"relatime", kMount, MS_RELATIME, kTimes, {MOUNT_ATTR_RELATIME, kAtime}},
    {"remount", kCall, MS_REMOUNT, 0, {}},
    {"ro", kMount, MS_RDONLY, 0, {MOUNT_ATTR_RDONLY, 0}},
    {"rw", kMount, 0, MS_RDONLY, {0, MOUNT_ATTR_RDONLY}},
    {"silent", kCall, MS_SILENT, 0, {}},
    {"strictatime", kMount, MS_STRICTATIME, kTimes, {MOUNT_ATTR_STRICTATIME, kAtime}},
    {"suid", kMount, 0, MS_NOSUID, {0, MOUNT_ATTR_NOSUID}},
    {"symfollow", kMount, 0, MS_NOSYMFOLLOW, {0, MOUNT_ATTR_NOSYMFOLLOW}},
    {"sync", kFileSystem, MS_SYNCHRONOUS, 0, {}},
});

struct PropagationWord {
  std::string_view name;
  Propagation value;
};

constexpr auto kPropagations = std::to_array<PropagationWord>({
    {"private", {MS_PRIVATE, false}},
    {"rprivate", {MS_PRIVATE, true}},
    {"rshared", {MS_SHARED, true}},
    {"rslave", {MS_SLAVE, true}},
    {"runbindable", {MS_UNBINDABLE, true}},
    {"shared", {MS_SHARED, false}},
    {"slave", {MS_SLAVE, false}},
    {"unbindable", {MS_UNBINDABLE, false}},
});

}  // namespace

const Word* FindWord(std::string_view name) {
  const auto found = std::ranges::find(kWords, name, &Word::name);
  return found == kWords.end() ? nullptr : &*found;
}

uint64_t AttributesOf(unsigned long flags) {
  uint64_t attributes = 0;
  for (const Word& word : kWords) {
    attributes |= (flags & word.set) != 0 ? word.attributes.set : 0;
  }
  return attributes;
}

unsigned long Propagation::flags() const {
  return type | (recursive ? static_cast<unsigned long>(MS_REC) : 0UL);
}

const Propagation* FindPropagation(std::string_view name) {
  const auto found = std::ranges::find(kPropagations, name, &PropagationWord::name);
  return found == kPropagations.end() ? nullptr : &found->value;
}

}  // namespace gantry::mount
