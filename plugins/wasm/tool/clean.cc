// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <ostream>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/context/own_processes.h>
#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/fetch/digests.h"
#include "plugins/wasm/tool/work.h"

namespace gantry::wasm::tool {
namespace {

constexpr std::chrono::minutes kListing{1};

Result<ArtifactStore::Kept> CleanOf(SandboxContext& context, const Arguments& arguments) {
  GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-wasm-fetch"));
  GANTRY_TRY(const std::set<Sha256Digest> used,
             fetch::FindDigests(context, program, arguments.address, kListing));
  const int64_t now = CacheOptions().now();
  // With 0 days all of them go, those of this second, too.
  const int64_t before = now - std::chrono::seconds(arguments.unused).count() + 1;
  return ArtifactStore(arguments.directory, 0).Clean(used, before, now);
}

}  // namespace

bool Clean(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  if (geteuid() != 0) {
    err << "gantryctl wasm: the cache is root's: call it as root\n";
    return false;
  }
  OwnProcesses context(
      [&err](LogLevel, std::string_view message) { err << "gantryctl wasm: " << message << "\n"; });
  const auto kept = CleanOf(context, arguments);
  if (!kept) {
    err << "gantryctl wasm: clean '" << arguments.directory << "': " << kept.error().message
        << "\n";
    return false;
  }
  out << Format("{} removed, {} left with {} bytes\n", kept->removed, kept->entries, kept->bytes);
  return true;
}

}  // namespace gantry::wasm::tool
