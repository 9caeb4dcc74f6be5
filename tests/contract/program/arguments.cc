// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/program/arguments.h"

#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/backend/plugin_host.h"
#include "core/config/config.h"
#include "core/link/paths.h"
#include "tests/contract/harness/own_network.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;

struct Words {
  std::string plugin;
  std::string options;
  std::string name;
  std::string rule;
};

std::string NameOf(const std::string& plugin) {
  const std::string file = fs::path(plugin).filename();
  constexpr std::string_view kBefore = "libgantry_";
  constexpr std::string_view kAfter = ".so";
  return file.starts_with(kBefore) && file.ends_with(kAfter)
             ? file.substr(kBefore.size(), file.size() - kBefore.size() - kAfter.size())
             : std::string();
}

std::vector<std::string> PatternsOf(const std::string& rule) {
  std::istringstream stream(rule);
  std::vector<std::string> patterns;
  for (std::string one; std::getline(stream, one, ':');) {
    patterns.push_back(one);
  }
  return patterns;
}

/// A rule is SUITE.TEST; GoogleTest knows it as Backends/SUITE.TEST/BACKEND.
std::string FilterOf(const std::string& rule) {
  std::string filter;
  for (const std::string& one : PatternsOf(rule)) {
    filter += (filter.empty() ? "Backends/" : ":Backends/") + one + "/*";
  }
  return filter.empty() ? "*" : filter;
}

Status ReadOptions(const std::string& path, Subject& subject) {
  if (std::error_code error; !fs::exists(path, error)) {
    return Fail(Code::kNotFound, "--options '{}': no such file", path);
  }
  GANTRY_TRY(const config::Config config, config::Load(path));
  bool named = config.backends.contains(subject.name);
  if (const auto backend = config.backends.find(subject.name); backend != config.backends.end()) {
    subject.backend_options = backend->second.options.json;
  }
  for (const auto& [name, handler] : config.handlers) {
    if (handler.backend == subject.name) {
      subject.handler_options = handler.options.json;
      named = true;
    }
  }
  if (!named) {
    return Fail(Code::kInvalidArgument,
                "--options '{}': it has nothing for the backend '{}', neither below 'backends' nor "
                "a handler of it below 'handlers'",
                path, subject.name);
  }
  return {};
}

Status Fill(const Words& words, Arguments& arguments) {
  Subject subject;
  subject.plugin = fs::absolute(words.plugin).lexically_normal();
  if (std::error_code error; !fs::exists(subject.plugin, error)) {
    return Fail(Code::kNotFound, "--plugin '{}': no such file", words.plugin);
  }
  subject.name = words.name.empty() ? NameOf(words.plugin) : words.name;
  if (subject.name.empty()) {
    return Fail(Code::kInvalidArgument,
                "'{}' is not called libgantry_NAME.so: say its name with --name", words.plugin);
  }
  if (!words.options.empty()) {
    GANTRY_CHECK_OK(ReadOptions(fs::absolute(words.options), subject));
  }
  GANTRY_TRY(const std::string engine, link::FindProgram("gantryd"));
  arguments.setup.programs = fs::path(engine).parent_path();
  arguments.setup.subjects = {subject};
  GANTRY_CHECK_OK(backend::PluginHost::Probe(engine, subject.plugin, subject.name));
  return {};
}

}  // namespace

Result<Arguments> ReadArguments(int argc, char** argv) {
  Arguments arguments;
  arguments.setup.anybodys = true;
  Words words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string* const value = word == "--plugin"    ? &words.plugin
                               : word == "--options" ? &words.options
                               : word == "--name"    ? &words.name
                               : word == "--rule"    ? &words.rule
                                                     : nullptr;
    if (value != nullptr && i + 1 < argc) {
      *value = argv[++i];
    } else if (word == "--help" || word == "-h") {
      arguments.help = true;
    } else if (word == "--own-network") {
      OwnNetworks() = true;
    } else if (word == "--list") {
      arguments.list = true;
    } else if (word == "--verbose") {
      arguments.setup.verbose = true;
    } else {
      return Fail(Code::kInvalidArgument, "'{}': not known, or without its value", word);
    }
  }
  arguments.filter = FilterOf(words.rule);
  arguments.patterns = PatternsOf(words.rule);
  if (arguments.list) {
    arguments.setup.subjects = {{.name = "any", .plugin = ""}};
  } else if (!arguments.help) {
    if (words.plugin.empty()) {
      return Fail(Code::kInvalidArgument, "which plugin? say --plugin FILE");
    }
    GANTRY_CHECK_OK(Fill(words, arguments));
  }
  return arguments;
}

}  // namespace gantry::contract
