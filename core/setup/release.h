// SPDX-License-Identifier: Apache-2.0
//
// Releases of containerd, and how they differ in what they read. docs/containerd.md has the rest.
// Thread: any. Blocks: never.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::setup {

struct Release {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const Release&) const = default;

  std::string Text() const;

  /// The latest version of a configuration that it reads. Source: containerd 1.6.20, 1.7.24, 2.0.14
  /// to 2.3.4, version/version.go and services/server/config.
  int LatestConfig() const;

  /// A file by `imports` adds to the sections of the main file. Before 2.0 it replaces them: a
  /// runtime in it would be all that is left of CRI's configuration. Source: the same,
  /// `mergeConfig`.
  bool MergesImports() const { return major >= 2; }
};

/// Of what `containerd --version` writes. Errors: kInvalidArgument where there is none in it;
/// kUnimplemented for one that gantry knows nothing of.
Result<Release> ParseRelease(std::string_view text);

/// Who makes the pods of a runtime.
enum class Sandboxer {
  /// containerd, with a pause container.
  kPodsandbox,
  /// gantry's shim.
  kShim,
  /// gantry's gRPC server.
  kController,
};

/// Errors: kInvalidArgument.
Result<Sandboxer> ParseSandboxer(std::string_view word);

/// Errors: kFailedPrecondition, with what to do, where such pods would fail with it.
Status CheckSandboxer(const Release& release, Sandboxer sandboxer);

}  // namespace gantry::setup
