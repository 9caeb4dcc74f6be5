// SPDX-License-Identifier: Apache-2.0
//
// config.json of a bundle, as far as the core acts on it, checked. Backends get
// the text as it is: what is not named here is theirs.
// Source: OCI runtime-spec 1.2, config.md and config-linux.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/process.h>

#include "core/oci/resources.h"

namespace gantry::oci {

/// Largest config.json that is read unless the configuration says otherwise.
inline constexpr size_t kMaxSpecBytes = size_t{16} << 20;

struct User {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::optional<uint32_t> umask;
  std::vector<uint32_t> additional_gids;
};

/// The `process` object: of config.json, or of an Exec request.
struct ProcessSpec {
  bool terminal = false;
  std::optional<ConsoleSize> console_size;
  User user;
  /// Never empty; `args[0]` is not empty either.
  std::vector<std::string> args;
  std::vector<std::string> env;
  /// Absolute.
  std::string cwd;
  /// It has an AppArmor profile or an SELinux label.
  bool confined = false;
  /// The object as it came; empty in a `Spec`, which has it in its own text.
  std::string json;
};

struct Root {
  /// As written: absolute, or relative to the bundle.
  std::string path;
  bool readonly = false;
};

struct SpecMount {
  std::string destination;
  std::string type;
  std::string source;
  std::vector<std::string> options;
};

struct LinuxNamespace {
  /// pid, network, mount, ipc, uts, user, cgroup, time.
  std::string type;
  /// The one to join; empty: a new one.
  std::string path;
};

/// Tens of kilobytes: to be used and dropped, not kept per container.
struct Spec {
  ProcessSpec process;
  Root root;
  std::string hostname;
  std::vector<SpecMount> mounts;
  std::map<std::string, std::string> annotations;
  std::vector<LinuxNamespace> namespaces;
  std::string cgroups_path;
  os::CgroupResources resources;
  /// `linux.resources` as it came; empty when absent.
  std::string resources_json;
  /// The whole text, byte for byte.
  std::string json;

  /// The container gets a pid namespace of its own, so that the kernel ends
  /// every process of it with its init.
  bool has_private_pid_namespace() const;
  /// The path of the network namespace that the container joins; empty: none.
  std::string network_namespace_path() const;
  /// Null when the type is not listed: the host's is used.
  const LinuxNamespace* FindNamespace(std::string_view type) const;
  /// Empty when absent.
  std::string_view annotation(const std::string& key) const;
  /// Absolute path of the root file system of a container with this bundle.
  std::string RootPath(std::string_view bundle) const;
  /// Where its root file system is; `mounted`: the request brought it.
  std::string RootfsIn(const std::string& bundle, bool mounted) const;
};

/// Reads and checks `bundle`/config.json.
/// Errors: kNotFound: no such file; kInvalidArgument: anything wrong with it,
/// with the file and a JSON pointer (`/process/args/0`); as `os::ReadFile` else.
/// Blocks: for the file. Thread: workers.
Result<Spec> ReadSpec(const std::string& bundle, size_t max_bytes = kMaxSpecBytes);

/// The same for text at hand; `file` is what errors call it.
Result<Spec> ParseSpec(std::string text, std::string_view file);

/// The `process` object of an Exec request. Errors: kInvalidArgument.
Result<ProcessSpec> ParseProcess(std::string text, std::string_view what = "exec spec");

/// `text`, a `process` object, with its `terminal` replaced: the request's own
/// field overrides it. Errors: kInvalidArgument.
Result<std::string> WithTerminal(std::string_view text, bool terminal);

}  // namespace gantry::oci
