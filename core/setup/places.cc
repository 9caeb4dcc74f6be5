// SPDX-License-Identifier: Apache-2.0
#include "core/setup/places.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::setup {
namespace {

constexpr size_t kMostMainBytes = size_t{4} << 20;

std::string DropInOf(const std::string& folder) { return Format("{}/{}", folder, kDropInName); }

/// containerd's configuration, without what is ours.
Result<std::string> ReadOthers(const Layout& layout) {
  std::string text;
  if (layout.generated) {
    if (!Exists(layout.config)) {
      return Fail(Code::kNotFound,
                  "'{}' is not there: {} makes it; start that once, then do this again",
                  layout.config, layout.distribution);
    }
    GANTRY_TRY(text, ReadFile(layout.config, kMostMainBytes));
  } else {
    GANTRY_TRY(auto read, ReadForChange(layout.config));
    text = read ? std::move(*read) : "";
  }
  GANTRY_TRY(const auto block, FindBlock(text, layout.config));
  return block ? WithoutBlock(text, *block) : text;
}

/// What can be added to. `text`: the file without what is ours.
Result<ConfigFile> ParseOthers(const std::string& text, const Layout& layout,
                               const Release& release, std::string_view program) {
  if (text.empty()) {
    ConfigFile fresh;
    // Version 3 is what every 2.x reads.
    fresh.version = std::min(release.LatestConfig(), 3);
    return fresh;
  }
  GANTRY_TRY(ConfigFile parsed, ParseConfig(text, layout.config));
  if (parsed.cri_disabled) {
    return Fail(
        Code::kFailedPrecondition,
        "'{}' disables containerd's CRI, so no kubelet uses this containerd: take it out of "
        "`disabled_plugins` first",
        layout.config);
  }
  if (parsed.version < 2) {
    return Fail(Code::kFailedPrecondition,
                "'{}' is a configuration of version 1 (it says no `version`): write "
                "`version = 2`, if nothing in it is older, or make it anew of `containerd config "
                "migrate`",
                layout.config);
  }
  if (parsed.version > release.LatestConfig()) {
    return Fail(Code::kFailedPrecondition,
                "'{}' is of version {}, and containerd {} ('{}') reads up to {}: name the one that "
                "this node runs with --containerd",
                layout.config, parsed.version, release.Text(), program, release.LatestConfig());
  }
  return parsed;
}

/// The file of our own. `folders`: those that are imported; where there are several, that of the
/// distribution.
std::string PickDropIn(const Layout& layout, const std::vector<std::string>& folders) {
  const auto usual = layout.Candidates();
  const auto known = std::ranges::find_if(folders, [&](const std::string& folder) {
    return std::ranges::contains(usual, DropInOf(folder));
  });
  return DropInOf(known != folders.end() ? *known : folders.front());
}

}  // namespace

Result<Place> ReadPlace(const std::string& path) {
  Place place;
  GANTRY_TRY(place.text, ReadForChange(path));
  if (place.text) {
    GANTRY_TRY(place.block, FindBlock(*place.text, path));
  }
  return place;
}

FileChange TakenBack(const std::string& path, const Place& place) {
  FileChange change{.path = path, .before = place.text, .after = place.text};
  if (place.text && place.block) {
    change.after = WithoutBlock(*place.text, *place.block);
    if (place.block->made_file && change.after->empty()) {
      change.after.reset();
      change.remove_folder = place.block->made_folder;
    }
  }
  return change;
}

bool Places::HasOurs() const {
  return std::ranges::any_of(files, [](const auto& one) { return one.second.block.has_value(); });
}

std::vector<std::string> Places::OurRuntimes() const {
  std::vector<std::string> names;
  for (const auto& [path, place] : files) {
    const auto block = place.block ? ParseConfig(place.block->body, path) : ConfigFile();
    if (block) {
      std::ranges::copy(block->runtimes | std::views::keys, std::back_inserter(names));
    }
  }
  return names;
}

Result<Places> ReadPlaces(const Layout& layout, const Release& release, std::string_view program) {
  Places places;
  GANTRY_TRY(places.others, ReadOthers(layout));
  GANTRY_TRY(places.parsed, ParseOthers(places.others, layout, release, program));
  std::vector<std::string> paths = layout.Candidates();
  const std::vector<std::string> folders = layout.DropInFolders(places.parsed);
  std::ranges::transform(folders, std::back_inserter(paths), DropInOf);
  for (const std::string& path : paths) {
    if (!places.files.contains(path)) {
      GANTRY_TRY(places.files[path], ReadPlace(path));
    }
  }
  places.drop_in = release.MergesImports() && !folders.empty();
  if (places.drop_in) {
    places.picked = PickDropIn(layout, folders);
  } else {
    places.picked = layout.generated ? layout.TemplateOf(places.parsed.version) : layout.config;
  }
  return places;
}

std::vector<std::string> PathsToTakeBack(const Layout& layout) {
  std::vector<std::string> paths = layout.Candidates();
  if (const auto text = ReadFile(layout.config, kMostMainBytes)) {
    // What does not parse imports nothing; what is ours can be taken back nevertheless.
    if (const auto parsed = ParseConfig(*text, layout.config)) {
      std::ranges::transform(layout.DropInFolders(*parsed), std::back_inserter(paths), DropInOf);
    }
  }
  return paths;
}

}  // namespace gantry::setup
