// SPDX-License-Identifier: Apache-2.0
//
// A process of a container is made by a child of the agent's that the container maker of the
// toolkit is run in: it reads config.json, makes cgroup, namespaces, mounts, waits at the gate and
// ends when the program runs. So the agent itself waits for no file system, and what a config.json
// takes of memory is gone with that child. The process is the agent's own child, since the maker
// makes siblings.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::guest {

struct MakeOrder {
  std::string container{};
  /// Where what is known of it lies: the folder is made, and is the container's alone.
  std::string folder{};
  std::string bundle{};
  /// Of a container; an exec's is in the folder.
  std::string spec_json{};
  /// Of an exec: its `process`, and a pidfd of the container's init. Borrowed.
  std::string process_json{};
  int init = -1;
  bool terminal = false;
  /// Borrowed.
  std::array<int, 3> streams = {-1, -1, -1};
};

/// The cgroup of a container in the guest.
std::string CgroupPathOf(const std::string& container);

/// What the maker says.
struct MakerWord {
  enum class Word : uint32_t { kNone = 0, kMade = 1, kStarted = 2, kFailed = 3 };

  uint32_t word = 0;
  int32_t pid = 0;
  std::vector<std::string> warnings{};
  std::optional<protocol::Failure> failure{};

  void Each(this auto& self, auto&& field) {
    field(1, self.word);
    field(2, self.pid);
    field(3, self.warnings);
    field(4, self.failure);
  }
};

struct HeardWord {
  MakerWord word{};
  UniqueFd pidfd{};
  UniqueFd console{};
};

/// The agent's end of a maker. To drop it before `Open` ends what was made.
/// Thread: one. Blocks: never.
class Maker {
 public:
  static Result<Maker> Begin(const MakeOrder& order);

  explicit operator bool() const { return static_cast<bool>(socket_); }

  int fd() const { return socket_.get(); }

  /// The next word; none: it has not come. Errors: kUnavailable: the maker has ended.
  Result<std::optional<HeardWord>> Hear();
  /// Lets the program be executed; `kStarted` or `kFailed` is the answer.
  Status Open();

  void Drop() { socket_.reset(); }

  Maker() = default;

 private:
  explicit Maker(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_{};
};

}  // namespace gantry::vmm::guest
