// SPDX-License-Identifier: Apache-2.0
//
// gantryctl-wasm, which is `gantryctl wasm`. It works on the cache's directory by itself: an engine
// need not run, and one that does is not asked.
#include <iostream>
#include <string>
#include <vector>

#include "plugins/wasm/cache/listing.h"
#include "plugins/wasm/cache/store.h"
#include "plugins/wasm/tool/arguments.h"
#include "plugins/wasm/tool/work.h"

namespace gantry::wasm::tool {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

bool List(const Arguments& arguments) {
  const auto all = ArtifactStore(arguments.directory, 0).List();
  if (!all) {
    std::cerr << "gantryctl wasm: list '" << arguments.directory << "': " << all.error().message
              << "\n";
    return false;
  }
  std::cout << (arguments.json ? ListingJson(*all) : ListingText(*all, CacheOptions().now()));
  return true;
}

int Run(const std::vector<std::string>& words) {
  const auto arguments = Parse(words);
  if (!arguments) {
    std::cerr << "gantryctl wasm: " << arguments.error().message << "\n" << HelpText();
    return kUsage;
  }
  if (arguments->help) {
    std::cout << HelpText();
    return 0;
  }
  const bool done = arguments->command == "compile" ? Compile(*arguments, std::cout, std::cerr)
                    : arguments->command == "clean" ? Clean(*arguments, std::cout, std::cerr)
                                                    : List(*arguments);
  return done ? 0 : kFailed;
}

}  // namespace
}  // namespace gantry::wasm::tool

int main(int argc, char** argv) {
  return gantry::wasm::tool::Run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
