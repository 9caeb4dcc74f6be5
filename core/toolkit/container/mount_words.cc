// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/mount_words.h"

#include <sys/mount.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace gantry::container {
namespace {

struct AttributeWord {
  std::string_view name;
  uint64_t set = 0;
  uint64_t clear = 0;
};

/// Each of them with an r before it is for all mounts below, too.
constexpr auto kAttributeWords = std::to_array<AttributeWord>({
    {"atime", 0, MOUNT_ATTR__ATIME},
    {"dev", 0, MOUNT_ATTR_NODEV},
    {"diratime", 0, MOUNT_ATTR_NODIRATIME},
    {"exec", 0, MOUNT_ATTR_NOEXEC},
    {"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
    {"nodev", MOUNT_ATTR_NODEV, 0},
    {"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
    {"noexec", MOUNT_ATTR_NOEXEC, 0},
    {"norelatime", 0, MOUNT_ATTR__ATIME},
    {"nostrictatime", 0, MOUNT_ATTR__ATIME},
    {"nosuid", MOUNT_ATTR_NOSUID, 0},
    {"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
    {"relatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    {"ro", MOUNT_ATTR_RDONLY, 0},
    {"rw", 0, MOUNT_ATTR_RDONLY},
    {"strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
    {"suid", 0, MOUNT_ATTR_NOSUID},
    {"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW},
});

struct PropagationWord {
  std::string_view name;
  MountWords::Propagation value;
};

constexpr auto kPropagationWords = std::to_array<PropagationWord>({
    {"private", {MS_PRIVATE, false}},
    {"rprivate", {MS_PRIVATE, true}},
    {"rshared", {MS_SHARED, true}},
    {"rslave", {MS_SLAVE, true}},
    {"runbindable", {MS_UNBINDABLE, true}},
    {"shared", {MS_SHARED, false}},
    {"slave", {MS_SLAVE, false}},
    {"unbindable", {MS_UNBINDABLE, false}},
});

/// Of the file system, whichever it is; the kernel's fsconfig(2) knows them by these names.
constexpr auto kGeneralWords = std::to_array<std::string_view>(
    {"async", "dirsync", "lazytime", "mand", "nolazytime", "nomand", "sync"});

/// What mount(8) and mount(2) have and what changes nothing here.
constexpr auto kIdleWords = std::to_array<std::string_view>({"", "defaults", "loud", "silent"});

template <class Words>
auto FindWord(const Words& words, std::string_view name) {
  const auto found = std::ranges::find(words, name, [](const auto& word) { return word.name; });
  return found == words.end() ? nullptr : &*found;
}

void Add(const AttributeWord& word, MountAttributes& attributes) {
  attributes.set = (attributes.set & ~word.clear) | word.set;
  attributes.clear = (attributes.clear & ~word.set) | word.clear;
}

bool AddFlag(std::string_view word, MountWords& words) {
  if (word == "bind" || word == "rbind") {
    words.bind = true;
    words.recursive = word == "rbind";
  } else if (word == "remount") {
    words.remount = true;
  } else if (word == "tmpcopyup") {
    words.copy_up = true;
  } else if (word == "idmap" || word == "ridmap") {
    words.id_mapped = true;
    words.id_mapped_tree = word == "ridmap";
  } else {
    return std::ranges::contains(kIdleWords, word);
  }
  return true;
}

void AddWord(const std::string& option, MountWords& words) {
  if (const auto* top = FindWord(kAttributeWords, option)) {
    Add(*top, words.top);
  } else if (const auto* propagation = FindWord(kPropagationWords, option)) {
    words.propagation.push_back(propagation->value);
  } else if (AddFlag(option, words)) {
    return;
  } else if (const auto* tree =
                 option.starts_with('r') ? FindWord(kAttributeWords, option.substr(1)) : nullptr) {
    Add(*tree, words.tree);
  } else if (std::ranges::contains(kGeneralWords, option)) {
    words.general.push_back(option);
  } else {
    words.data.push_back(option);
  }
}

}  // namespace

bool MountWords::read_only() const { return ((top.set | tree.set) & MOUNT_ATTR_RDONLY) != 0; }

Result<MountWords> ReadMountWords(const oci::SpecMount& mount) {
  MountWords words;
  words.bind = mount.type == "bind" || mount.type == "rbind";
  words.recursive = mount.type == "rbind";
  words.id_mapped = !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
  for (const std::string& option : mount.options) {
    AddWord(option, words);
  }
  if (words.bind && !words.data.empty()) {
    return Fail(Code::kInvalidArgument, "option '{}': not known, and a bind has no file system's",
                words.data.front());
  }
  if (words.copy_up && (words.bind || mount.type != "tmpfs")) {
    return Fail(Code::kInvalidArgument, "option 'tmpcopyup': only for type 'tmpfs'");
  }
  return words;
}

Result<MountWords::Propagation> ReadPropagation(const std::string& word) {
  if (word.empty()) {
    return MountWords::Propagation{MS_PRIVATE, true};
  }
  if (const auto* found = FindWord(kPropagationWords, word)) {
    return found->value;
  }
  return Fail(Code::kInvalidArgument, "rootfsPropagation '{}': not known", word);
}

}  // namespace gantry::container
