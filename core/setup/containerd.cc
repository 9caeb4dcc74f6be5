// SPDX-License-Identifier: Apache-2.0
#include "core/setup/containerd.h"

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/ask_program.h>

#include "core/os/fs.h"

namespace gantry::setup {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr auto kLimit = std::chrono::seconds(20);

/// containerd's last line, which is its error; those before it are warnings.
std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return std::string(text.substr(text.rfind('\n') + 1).substr(0, 500));
}

}  // namespace

Result<std::string> RunProgram(const std::string& program,
                               const std::vector<std::string>& arguments, bool with_errors) {
  return AskProgram(
      {.program = program,
       .arguments = arguments,
       .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "LC_ALL=C"},
       .with_errors = with_errors,
       .max_bytes = kMostOutput,
       .limit = kLimit});
}

Result<Release> ReleaseOf(const Ask& ask, const std::string& program) {
  GANTRY_TRY(const std::string text, ask(program, {"--version"}, false));
  auto release = ParseRelease(text);
  if (!release) {
    return Fail(release.error().code, "ask '{}' for its version: {}", program,
                release.error().message);
  }
  return *release;
}

Result<std::string> DumpOf(const Ask& ask, const std::string& program, const std::string& config) {
  const std::vector<std::string> arguments{"--config", config, "config", "dump"};
  GANTRY_TRY(std::string text, ask(program, arguments, false));
  if (!text.empty()) {
    return text;
  }
  GANTRY_TRY(const std::string words, ask(program, arguments, true));
  return Fail(Code::kFailedPrecondition, "containerd does not take '{}': {}", config,
              LastLine(words));
}

Result<std::string> DumpOf(const Ask& ask, const std::string& program, const Draft& draft) {
  GANTRY_TRY(const os::TempDir folder, os::TempDir::Create());
  const std::string main = folder.path() + "/config.toml";
  std::string text = draft.text;
  if (!draft.imports.empty()) {
    std::string imports;
    for (const std::string& file : draft.imports) {
      imports += Format("\"{}\", ", file);
    }
    if (!draft.added.empty()) {
      const std::string added = folder.path() + "/added.toml";
      GANTRY_CHECK_OK(WriteFile(added, draft.added, 0600));
      imports += Format("\"{}\"", added);
    }
    text = Format("version = {}\nimports = [{}]\n", draft.version, imports);
  }
  GANTRY_CHECK_OK(WriteFile(main, text, 0600));
  return DumpOf(ask, program, main);
}

}  // namespace gantry::setup
