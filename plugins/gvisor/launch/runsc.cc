// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/runsc.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/ask_program.h>

namespace gantry::gvisor {
namespace {

constexpr const char* kSidecar = "gvisor-bin/gvisor_sentry";
/// 83 MB of Go, read from a cold disk.
constexpr std::chrono::seconds kAnswerLimit{10};
constexpr size_t kMaxHelp = size_t{256} << 10;

bool IsFlagLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

Result<std::string> Ask(const std::string& program, std::vector<std::string> arguments) {
  return AskProgram({.program = program,
                     .arguments = std::move(arguments),
                     .with_errors = true,
                     .max_bytes = kMaxHelp,
                     .limit = kAnswerLimit});
}

Result<Program> Open(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file) {
    return FailErrno(errno, "open '{}'", path);
  }
  return Program{path, std::move(file)};
}

/// `runsc version release-20260907.0`
std::string ReleaseIn(std::string_view version) {
  constexpr std::string_view kWord = " version ";
  const size_t at = version.find(kWord);
  const std::string_view label =
      at == std::string_view::npos ? std::string_view() : version.substr(at + kWord.size());
  return std::string(label.substr(0, label.find_first_of(" \n")));
}

/// Beside the binary as it is called, or as its links lead to it.
std::string FindSidecar(const std::string& runsc) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(runsc, failed);
  for (const std::filesystem::path& one : {std::filesystem::path(runsc), real}) {
    std::string found = (one.parent_path() / kSidecar).string();
    if (IsExecutable(found)) {
      return found;
    }
  }
  return {};
}

Result<Program> FindSentry(const std::string& runsc, std::set<std::string>& boot) {
  if (const std::string sidecar = FindSidecar(runsc); !sidecar.empty()) {
    GANTRY_TRY(const std::string help, Ask(sidecar, {"help", "boot"}));
    if (std::set<std::string> listed = FlagsIn(help); listed.contains("start-sync-fd")) {
      boot = std::move(listed);
      return Open(sidecar);
    }
  }
  return Program{runsc, UniqueFd()};
}

}  // namespace

std::set<std::string> FlagsIn(std::string_view help) {
  std::set<std::string> flags;
  for (size_t at = 0; (at = help.find('-', at)) != std::string_view::npos;) {
    const bool begins =
        at == 0 || help[at - 1] == ' ' || help[at - 1] == '\n' || help[at - 1] == '\t';
    const size_t name = help.find_first_not_of('-', at);
    size_t end = name;
    while (end != std::string_view::npos && end < help.size() && IsFlagLetter(help[end])) {
      ++end;
    }
    if (name == std::string_view::npos) {
      break;
    }
    if (begins && end > name) {
      flags.emplace(help.substr(name, end - name));
    }
    at = end;
  }
  return flags;
}

std::string Dialect::Missing() const {
  constexpr std::array<const char*, 8> kBoot = {"bundle",    "gofer-mount-confs", "io-fds",
                                                "mounts-fd", "start-sync-fd",     "controller-fd",
                                                "spec-fd",   "stdio-fds"};
  constexpr std::array<const char*, 5> kGofer = {"bundle", "gofer-mount-confs", "spec-fd",
                                                 "mounts-fd", "io-fds"};
  for (const char* flag : kBoot) {
    if (!boot.contains(flag)) {
      return std::string("boot --") + flag;
    }
  }
  for (const char* flag : kGofer) {
    if (!gofer.contains(flag)) {
      return std::string("gofer --") + flag;
    }
  }
  return {};
}

bool Runsc::IsMixed() const {
  return !release.empty() && !sentry_release.empty() && release != sentry_release;
}

std::string WhyMixed(const Runsc& runsc) {
  return Format(
      "its sentry '{}' is of release '{}', it is of '{}': install both of one release, or set "
      "runsc_config.sidecar-release-enforcement-policy to NEVER",
      runsc.sentry.path, runsc.sentry_release, runsc.release);
}

std::string ReleaseEnvironment(const Runsc& runsc, bool same) {
  if (!runsc.has_sidecar() || runsc.release.empty()) {
    return {};
  }
  return Format("GVISOR_ENFORCE_RELEASE={}{}", same ? "" : "SKIP:", runsc.release);
}

std::string WhatIsMissing(const Runsc& runsc) {
  const std::string missing = runsc.dialect.Missing();
  return missing.empty() ? std::string()
                         : Format("'{}': this build has no '{}', which gantry needs",
                                  runsc.runsc.path, missing);
}

Result<std::shared_ptr<const Runsc>> ProbeRunsc(const std::string& path) {
  auto found = std::make_shared<Runsc>();
  GANTRY_TRY(found->identity, FileIdentity::Of(path));
  GANTRY_TRY(found->runsc, Open(path));
  GANTRY_TRY(const std::string version, Ask(path, {"--version"}));
  found->version = version.substr(0, version.find('\n'));
  GANTRY_TRY(const std::string gofer, Ask(path, {"help", "gofer"}));
  GANTRY_TRY(const std::string boot, Ask(path, {"help", "boot"}));
  GANTRY_TRY(const std::string global, Ask(path, {"flags"}));
  found->dialect = {FlagsIn(global), FlagsIn(boot), FlagsIn(gofer), gofer.contains("<container")};
  GANTRY_TRY(found->sentry, FindSentry(path, found->dialect.boot));
  found->release = ReleaseIn(version);
  found->sentry_release = found->release;
  if (found->has_sidecar()) {
    GANTRY_TRY(const std::string sentry, Ask(found->sentry.path, {"--version"}));
    found->sentry_release = ReleaseIn(sentry);
  }
  GANTRY_TRY(found->sentry_identity, FileIdentity::Of(found->sentry.path));
  if (found->dialect.global.empty() && found->dialect.boot.empty()) {
    return Fail(Code::kFailedPrecondition,
                "ask '{}' for its flags: it lists none; is it runsc? It says: {}", path,
                found->version.substr(0, 200));
  }
  return found;
}

}  // namespace gantry::gvisor
