// SPDX-License-Identifier: Apache-2.0
//
// What a node has before anything is planned: containerd's configuration without what is ours in
// it, each file that has our block or may get it, and which of them the runtimes belong into (the
// rule is in plan.h). Thread: any. Blocks: on files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "core/setup/block.h"
#include "core/setup/config_file.h"
#include "core/setup/file_change.h"
#include "core/setup/layout.h"
#include "core/setup/release.h"

namespace gantry::setup {

/// A file that has our block, or may get it.
struct Place {
  /// Nothing: there is no such file.
  std::optional<std::string> text = {};
  std::optional<Block> block = {};
};

/// Errors: those of `ReadForChange` and `FindBlock`.
Result<Place> ReadPlace(const std::string& path);

/// The file as it was before our block; without one it changes nothing.
FileChange TakenBack(const std::string& path, const Place& place);

struct Places {
  /// What containerd reads, without what is ours; and the same, parsed.
  std::string others = {};
  ConfigFile parsed = {};
  /// By their paths.
  std::map<std::string, Place> files = {};
  /// The one of `files` that the runtimes belong into.
  std::string picked = {};
  /// That one is a file of our own, in a folder whose files are imported.
  bool drop_in = false;

  bool HasOurs() const;
  /// Names of the runtimes in blocks that are there.
  std::vector<std::string> OurRuntimes() const;
};

/// `program`: containerd, for messages. Errors: kNotFound, kFailedPrecondition, kInvalidArgument
/// and the errno's, with what to do: the configuration is missing, or nothing can be added to it.
Result<Places> ReadPlaces(const Layout& layout, const Release& release, std::string_view program);

/// Each file that may have our block, whatever the configuration is like.
std::vector<std::string> PathsToTakeBack(const Layout& layout);

}  // namespace gantry::setup
