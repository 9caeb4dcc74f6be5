// SPDX-License-Identifier: Apache-2.0
//
// What is kept of each sandbox that the controller has: a folder ROOT/NAMESPACE/ID, which is also
// the sandbox's bundle, since containerd makes none for a controller. Beside what the engine has in
// it, a file says where its socket is, and another one how far its making has come, so that a
// program that begins anew knows which call its caller has given up.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::door {

enum class Stage {
  /// A Create that was not answered.
  kCreating,
  kCreated,
  /// A Start that was not answered.
  kStarting,
  kStarted,
};

std::string_view StageName(Stage stage);

struct SandboxKey {
  std::string ns;
  std::string id;

  auto operator<=>(const SandboxKey&) const = default;
};

/// Thread: workers. Blocks: for files in memory.
class Folders {
 public:
  /// `root`: an absolute path, whose parents exist.
  explicit Folders(std::string root) : root_(std::move(root)) {}

  /// Of a sandbox, whether it is there or not.
  std::string PathOf(const SandboxKey& key) const { return root_ + "/" + key.ns + "/" + key.id; }

  /// A new one, of the stage kCreating. Errors: kAlreadyExists; kInvalidArgument for what is no
  /// namespace or no id.
  Status Make(const SandboxKey& key) const;
  Status SetAddress(const SandboxKey& key, std::string_view socket) const;
  Status SetStage(const SandboxKey& key, Stage stage) const;

  /// kCreating also where nothing says it.
  Stage StageOf(const SandboxKey& key) const;

  /// The path of its socket. Errors: kNotFound: there is no such sandbox, or not yet.
  Result<std::string> Address(const SandboxKey& key) const;

  /// Again, or where there is none: nothing.
  Status Remove(const SandboxKey& key) const;

  struct Left {
    SandboxKey key;
    Stage stage = Stage::kCreating;
  };

  /// All that are there.
  Result<std::vector<Left>> All() const;

 private:
  std::string root_;
};

}  // namespace gantry::door
