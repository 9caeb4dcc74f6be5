// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/mount_words.h"

#include <sys/mount.h>

#include <string_view>

#include <gantry/toolkit/mount/detached.h>

namespace gantry::container {
namespace {

/// Of the words of a call of mount(2) the others change nothing here.
void AddCall(std::string_view word, MountWords& words) {
  if (word == "bind" || word == "rbind") {
    words.bind = true;
    words.recursive = word == "rbind";
  } else if (word == "remount") {
    words.remount = true;
  }
}

/// Words that the specification has and mount(8) has not.
bool AddOwn(const std::string& option, MountWords& words) {
  const auto* tree = option.starts_with('r') ? mount::FindWord(option.substr(1)) : nullptr;
  if (option == "tmpcopyup") {
    words.copy_up = true;
  } else if (option == "idmap" || option == "ridmap") {
    words.id_mapped = true;
    words.id_mapped_tree = option == "ridmap";
  } else if (tree != nullptr && tree->of == mount::Word::Of::kMount) {
    words.tree.Add(tree->attributes);
  } else {
    return option.empty();
  }
  return true;
}

void AddWord(const std::string& option, MountWords& words) {
  if (const auto* word = mount::FindWord(option)) {
    switch (word->of) {
      case mount::Word::Of::kMount:
        return words.top.Add(word->attributes);
      case mount::Word::Of::kFileSystem:
        return words.general.push_back(option);
      case mount::Word::Of::kCall:
        return AddCall(option, words);
    }
  }
  if (const auto* propagation = mount::FindPropagation(option)) {
    words.propagation.push_back(*propagation);
  } else if (!AddOwn(option, words)) {
    words.data.push_back(option);
  }
}

}  // namespace

bool MountWords::read_only() const { return ((top.set | tree.set) & MOUNT_ATTR_RDONLY) != 0; }

Status SetAttributes(int mount, const MountWords& words) {
  GANTRY_CHECK_OK(mount::SetAttributes(mount, words.tree, true));
  return mount::SetAttributes(mount, words.top, false);
}

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

Result<mount::Propagation> ReadPropagation(const std::string& word) {
  if (word.empty()) {
    return mount::Propagation{MS_PRIVATE, true};
  }
  if (const auto* found = mount::FindPropagation(word)) {
    return *found;
  }
  return Fail(Code::kInvalidArgument, "rootfsPropagation '{}': not known", word);
}

}  // namespace gantry::container
