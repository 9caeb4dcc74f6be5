// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/tool/arguments.h"

#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <gantry/number.h>

#include "plugins/wasm/quantity.h"

namespace gantry::wasm::tool {
namespace {

using Set = std::function<Status(Arguments& arguments, const std::string& value)>;

struct Word {
  /// Of which commands, each with a space behind it.
  std::string_view commands;
  Set set;
};

Set Text(std::string Arguments::* field) {
  return [field](Arguments& arguments, const std::string& value) -> Status {
    arguments.*field = value;
    return {};
  };
}

template <class Duration>
Set Number(Duration Arguments::* field, int64_t least, int64_t most) {
  return [field, least, most](Arguments& arguments, const std::string& value) -> Status {
    const auto number = ParseNumber(value);
    if (!number || *number < least || *number > most) {
      return Fail(Code::kInvalidArgument, "not a number from {} to {}", least, most);
    }
    arguments.*field = Duration(*number);
    return {};
  };
}

Set Bytes(uint64_t Arguments::* field) {
  return [field](Arguments& arguments, const std::string& value) -> Status {
    GANTRY_TRY(arguments.*field, ParseQuantity(value));
    return {};
  };
}

/// Those with a value.
const std::map<std::string_view, Word>& Words() {
  static const std::map<std::string_view, Word> words = {
      {"--directory", {"cache compile clean ", Text(&Arguments::directory)}},
      {"--address", {"compile clean ", Text(&Arguments::address)}},
      {"--namespace", {"compile ", Text(&Arguments::ns)}},
      {"--program", {"compile ", Text(&Arguments::program)}},
      {"--seconds", {"compile ", Number(&Arguments::limit, 1, 86'400)}},
      {"--memory", {"compile ", Bytes(&Arguments::memory)}},
      {"--max-module-bytes", {"compile ", Bytes(&Arguments::max_module_bytes)}},
      {"--unused", {"clean ", Number(&Arguments::unused, 0, 36'500)}},
  };
  return words;
}

std::unexpected<Error> Wrong(const std::string& word, std::string_view why) {
  return Fail(Code::kInvalidArgument, "'{}': {}", word.substr(0, 200), why);
}

Status SetOne(Arguments& arguments, const std::vector<std::string>& words, size_t& at) {
  const std::string& word = words[at];
  const auto found = Words().find(word);
  const bool known =
      found != Words().end() && found->second.commands.contains(arguments.command + " ");
  if (!known) {
    return Wrong(word, "there is no such option here");
  }
  if (at + 1 == words.size()) {
    return Wrong(word, "its value is missing");
  }
  ++at;
  Status set = found->second.set(arguments, words[at]);
  return set ? std::move(set) : Wrong(word + " " + words[at], set.error().message);
}

Status Check(const Arguments& arguments) {
  if (arguments.command == "compile" && arguments.what.empty()) {
    return Fail(Code::kInvalidArgument, "compile: no file and no image is named");
  }
  for (const std::string* path : {&arguments.directory, &arguments.address}) {
    if (!path->starts_with('/')) {
      return Wrong(*path, "not an absolute path");
    }
  }
  return {};
}

}  // namespace

const char* HelpText() {
  return R"(usage: gantryctl wasm cache [--json] [--directory DIR]
       gantryctl wasm compile [OPTION VALUE]... IMAGE|FILE...
       gantryctl wasm clean [--unused DAYS] [--address SOCKET] [--directory DIR]

  cache      modules that were compiled, or why they cannot be
  compile    ahead of time, so that no container waits for it; a FILE begins with / or .
  clean      removes what is of no image and was not used for DAYS (30)

  --directory DIR        the wasm backend's `cache_dir`, where that is not the default
  --json                 JSON instead of a table
  --address SOCKET       containerd's: /run/containerd/containerd.sock
  --namespace NAME       of the images, in containerd: default; of Kubernetes' k8s.io
  --program PATH         of an image with several modules that one, as the container's
                         first argument is
  --seconds N            what the compiler may take of each: 300
  --memory BYTES         the same: 2Gi
  --max-module-bytes N   of a larger one nothing is read: 64Mi
)";
}

Result<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  if (words.empty()) {
    return Fail(Code::kInvalidArgument, "no command is named");
  }
  arguments.command = words.front();
  arguments.help = arguments.command == "--help" || arguments.command == "-h";
  if (!arguments.help && arguments.command != "cache" && arguments.command != "compile" &&
      arguments.command != "clean") {
    return Wrong(arguments.command, "there is no such command");
  }
  for (size_t at = 1; at < words.size(); ++at) {
    if (words[at] == "--help" || words[at] == "-h") {
      arguments.help = true;
    } else if (words[at] == "--json" && arguments.command == "cache") {
      arguments.json = true;
    } else if (arguments.command == "compile" && !words[at].starts_with('-')) {
      arguments.what.push_back(words[at]);
    } else if (!arguments.help) {
      GANTRY_CHECK_OK(SetOne(arguments, words, at));
    }
  }
  if (!arguments.help) {
    GANTRY_CHECK_OK(Check(arguments));
  }
  return arguments;
}

}  // namespace gantry::wasm::tool
