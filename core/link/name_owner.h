// SPDX-License-Identifier: Apache-2.0
//
// Whose a descriptor or a process is that the keeper holds under a name. To the keeper a name is
// text, on the link and in its saved state; what it says is written and read here alone:
//
//   INSTANCE/EXEC/io/NAME      the streams of a process and their log program; an init has no
//                              EXEC: `7//io/stdout-r`
//   INSTANCE/sandbox/NAME      the sandbox that was made for that instance: `7/sandbox/init/web`,
//                              its descriptors `7/sandbox/backend/NAME`
//   backend:BACKEND/own/NAME   what a backend has for no sandbox; the engine's own: own_names.h
//
// INSTANCE is a number that never comes again. An exec may be called `sandbox`: what has `io`
// behind that is of its streams.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::link {

struct NameOwner {
  enum class Kind { kUnknown, kProcess, kSandbox, kBackend };

  Kind kind = Kind::kUnknown;
  /// Of a process or a sandbox.
  uint64_t instance = 0;
  /// The exec, or the backend.
  std::string id{};

  /// `exec`: empty for an init.
  static NameOwner Process(uint64_t instance, std::string_view exec);
  static NameOwner Sandbox(uint64_t instance);
  static NameOwner Backend(std::string_view backend);
  /// Of a whole name, or of what `Text` gave.
  static NameOwner Read(std::string_view name);

  /// What its names begin with, without the '/' behind that. Empty for kUnknown.
  std::string Text() const;
  /// What its names begin with; no other owner's do. Empty for kUnknown.
  std::string Prefix() const;
  /// The name of something of its own.
  std::string Name(std::string_view own) const;

  bool operator==(const NameOwner&) const = default;
};

/// What the names of all backends' own things begin with.
inline constexpr std::string_view kBackendNames = "backend:";

/// Whose share of what the keeper can hold a name is of, as text: all of one instance, or of one
/// backend, have the same.
std::string_view ShareOf(std::string_view name);
/// The instance of a share; 0: it is none's.
uint64_t InstanceOfShare(std::string_view share);

}  // namespace gantry::link
