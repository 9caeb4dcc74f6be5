// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>

#include "plugins/wasm/module/looks_like.h"

namespace gantry::wasm {
namespace {

constexpr const char* kAccepted =
    "accepted are a WebAssembly module, a WebAssembly component, an ELF program and a script that "
    "begins with #!";

struct Found {
  ImageFile file;
  std::string path;
};

/// The container's own, or that of execvp(3) where it has none.
std::string_view PathOf(const oci::ProcessSpec& process) {
  constexpr std::string_view kName = "PATH=";
  constexpr std::string_view kDefault = "/bin:/usr/bin";
  std::string_view path = kDefault;
  for (const std::string& variable : process.env) {
    if (variable.starts_with(kName)) {
      path = std::string_view(variable).substr(kName.size());
    }
  }
  return path;
}

/// By its name in a folder of PATH: a module, or what somebody may execute. Nothing: it is not
/// there.
std::optional<Found> SearchPath(const RootView& root, const oci::ProcessSpec& process,
                                const std::string& name) {
  auto here = root.OpenFile(NormalPath(process.cwd, name));
  if (here && IsWasm(FileKindOf(here->head))) {
    return Found{std::move(*here), NormalPath(process.cwd, name)};
  }
  std::string_view rest = PathOf(process);
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string folder(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    std::string path = NormalPath(process.cwd, Format("{}/{}", folder, name));
    auto file = root.OpenFile(path);
    if (file && (IsWasm(FileKindOf(file->head)) || (file->mode & 0111) != 0)) {
      return Found{std::move(*file), std::move(path)};
    }
  }
  return {};
}

/// Errors: kNotFound; kFailedPrecondition: there is something, and no file.
Result<Found> Find(const RootView& root, const oci::ProcessSpec& process, const std::string& name) {
  if (!name.contains('/')) {
    auto found = SearchPath(root, process, name);
    if (!found) {
      return Fail(Code::kNotFound, "'{}': no such file in '{}' or in the container's PATH", name,
                  process.cwd);
    }
    return std::move(*found);
  }
  std::string path = NormalPath(process.cwd, name);
  GANTRY_TRY(ImageFile file, root.OpenFile(path));
  return Found{std::move(file), std::move(path)};
}

/// What is there is no module, and was to be one.
std::unexpected<Error> NoModule(const Found& found) {
  return Fail(Code::kFailedPrecondition,
              "'{}': the container's annotations make it a WebAssembly program, and it is {}",
              found.path, LooksLike(found.file.head));
}

Result<Program> WasmProgram(const RootView& root, Found found, std::string entry) {
  for (const std::string& path : {std::string("/"), found.path}) {
    if (root.IsMountPoint(path)) {
      return Fail(Code::kFailedPrecondition,
                  "'{}': a mount at '{}' covers it; mount a folder, and name the module in it",
                  found.path, path);
    }
  }
  Program program;
  program.component = FileKindOf(found.file.head) == FileKind::kComponent;
  if (program.component && !entry.empty()) {
    return Fail(
        Code::kInvalidArgument,
        "'{}': it is a component, whose entry is its world's; no function '{}' can be named",
        found.path, entry);
  }
  program.file = std::move(found.file);
  program.path = std::move(found.path);
  program.entry = std::move(entry);
  return program;
}

Result<Program> NativeProgram(const Found& found) {
  if (FileKindOf(found.file.head) != FileKind::kNative) {
    return Fail(Code::kFailedPrecondition, "'{}': it is {}; {}", found.path,
                LooksLike(found.file.head), kAccepted);
  }
  if ((found.file.mode & 0111) == 0) {
    return Fail(Code::kPermissionDenied, "'{}': it is {}, and nobody may execute it (mode {:04o})",
                found.path, LooksLike(found.file.head), found.file.mode & 07777);
  }
  return Program{};
}

/// `path#function`, where no file has the whole name.
Result<Program> WithEntry(const RootView& root, const oci::ProcessSpec& process,
                          const std::string& name, bool claimed, Error not_found) {
  const size_t hash = name.rfind('#');
  auto found = hash == std::string::npos || hash == 0
                   ? Result<Found>(std::unexpected(std::move(not_found)))
                   : Find(root, process, name.substr(0, hash));
  if (!found || !IsWasm(FileKindOf(found->file.head))) {
    if (!claimed) {
      // A file system of the container's own may have it, or a layer of its image.
      Program unseen;
      unseen.missing = true;
      return unseen;
    }
    return found ? Result<Program>(NoModule(*found)) : std::unexpected(std::move(found).error());
  }
  if (hash + 1 == name.size()) {
    return Fail(Code::kInvalidArgument, "'{}': behind '#' there is no function's name", name);
  }
  return WasmProgram(root, std::move(*found), name.substr(hash + 1));
}

}  // namespace

Named NamedIn(const std::string& argument) {
  const size_t hash = argument.rfind('#');
  return hash == std::string::npos || hash == 0
             ? Named{argument, {}}
             : Named{argument.substr(0, hash), argument.substr(hash + 1)};
}

Result<Program> FindProgram(const RootView& root, const oci::ProcessSpec& process, Claim claim) {
  const std::string& name = process.args.front();
  const std::string_view path = std::string_view(name).substr(0, name.rfind('#'));
  if (claim == Claim::kSmart && path.ends_with(".wat")) {
    return Fail(Code::kFailedPrecondition,
                "'{}': WebAssembly text is not run; make a module of it (wat2wasm)", name);
  }
  if (claim == Claim::kNative || (claim == Claim::kSmart && !path.ends_with(".wasm"))) {
    return Program{};
  }
  const bool claimed = claim != Claim::kNone;
  auto found = Find(root, process, name);
  if (!found && found.error().code == Code::kNotFound) {
    return WithEntry(root, process, name, claimed, std::move(found).error());
  }
  if (!found) {
    return std::unexpected(std::move(found).error());
  }
  if (IsWasm(FileKindOf(found->file.head))) {
    return WasmProgram(root, std::move(*found), {});
  }
  return claimed ? Result<Program>(NoModule(*found)) : NativeProgram(*found);
}

}  // namespace gantry::wasm
