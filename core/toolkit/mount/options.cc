// SPDX-License-Identifier: Apache-2.0
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/options.h>
#include <gantry/toolkit/mount/words.h>

namespace gantry::mount {
namespace {

Status Apply(const std::string& option, MountOptions& out) {
  if (const Word* word = FindWord(option)) {
    out.flags = (out.flags & ~word->clear) | word->set;
  } else if (const Propagation* propagation = FindPropagation(option)) {
    out.propagation = propagation->flags();
  } else if (option == "loop") {
    out.loop = true;
  } else if (option == "direct-io") {
    out.direct_io = true;
  } else if (option.starts_with("uidmap=")) {
    GANTRY_TRY(out.uids, ParseIdMappings(std::string_view(option).substr(7)));
  } else if (option.starts_with("gidmap=")) {
    GANTRY_TRY(out.gids, ParseIdMappings(std::string_view(option).substr(7)));
  } else if (!option.empty()) {
    out.data.push_back(option);
  }
  return {};
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
    GANTRY_CHECK_OK(Apply(option, out));
  }
  if (out.uids.empty() != out.gids.empty()) {
    return Fail(Code::kInvalidArgument, "mount option '{}': uidmap and gidmap go together",
                out.uids.empty() ? "gidmap" : "uidmap");
  }
  if (out.direct_io && !out.loop) {
    // Then it is a word of the file system's.
    out.direct_io = false;
    out.data.emplace_back("direct-io");
  }
  return out;
}

}  // namespace gantry::mount
