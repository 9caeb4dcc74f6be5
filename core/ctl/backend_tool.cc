// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/backend_tool.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <gantry/error.h>

#include "core/ctl/arguments.h"
#include "core/link/paths.h"

namespace gantry::ctl {
namespace {

/// No option, and no way out of the folder.
bool IsName(const std::string& word) {
  return !word.empty() && word.front() != '-' && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

std::optional<int> RunBackendTool(const std::vector<std::string>& words, std::ostream& err) {
  if (words.empty() || !IsName(words.front())) {
    return std::nullopt;
  }
  const auto program = link::FindProgram("gantryctl-" + words.front());
  if (!program) {
    return std::nullopt;
  }
  // It calls itself as it was called.
  std::vector<std::string> arguments = words;
  arguments.front() = "gantryctl " + words.front();
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  execv(program->c_str(), pointers.data());
  err << "gantryctl: execute '" << *program << "': " << ErrnoName(errno) << "\n";
  return kFailed;
}

}  // namespace gantry::ctl
