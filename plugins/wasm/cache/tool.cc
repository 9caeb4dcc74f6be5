// SPDX-License-Identifier: Apache-2.0
//
// gantryctl-wasm, which is `gantryctl wasm`. It reads the cache's directory and changes nothing.
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "plugins/wasm/cache/artifacts.h"
#include "plugins/wasm/cache/listing.h"

namespace gantry::wasm {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr char kHelp[] = R"(usage: gantryctl wasm cache [--json] [--directory DIR]

  cache    modules that were compiled, or why they cannot be

  --json             JSON instead of a table
  --directory DIR    the wasm backend's `cache_dir`, where that is not the default
)";

struct Arguments {
  std::string command;
  std::string directory = CacheOptions().directory;
  bool json = false;
  bool help = false;
};

/// Unset: they are wrong.
std::optional<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") {
      arguments.help = true;
    } else if (words[i] == "--json") {
      arguments.json = true;
    } else if (words[i] == "--directory" && i + 1 < words.size()) {
      arguments.directory = words[++i];
    } else if (arguments.command.empty() && !words[i].starts_with('-')) {
      arguments.command = words[i];
    } else {
      return std::nullopt;
    }
  }
  return arguments.help || arguments.command == "cache" ? std::optional(arguments) : std::nullopt;
}

int Run(const std::vector<std::string>& words) {
  const auto arguments = Parse(words);
  if (!arguments || arguments->help) {
    (arguments ? std::cout : std::cerr) << kHelp;
    return arguments ? 0 : kUsage;
  }
  const auto all = ArtifactStore(arguments->directory, 0).List();
  if (!all) {
    std::cerr << "gantryctl wasm: list '" << arguments->directory << "': " << all.error().message
              << "\n";
    return kFailed;
  }
  std::cout << (arguments->json ? ListingJson(*all) : ListingText(*all, CacheOptions().now()));
  return 0;
}

}  // namespace
}  // namespace gantry::wasm

int main(int argc, char** argv) {
  return gantry::wasm::Run(std::vector<std::string>(argv + 1, argv + argc));
}
