// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that must outlive an engine, by name.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/keeper/state.h"
#include "core/link/messages.h"
#include "core/link/name_owner.h"

namespace gantry::keeper {

/// No container gets more than a part of it, and no pod, all its containers together. Thread: the
/// keeper's only one. Blocks: never.
class FdStore {
 public:
  /// The group of that share's container, as text; "" where it has none.
  using GroupOf = std::function<std::string(std::string_view share)>;

  explicit FdStore(size_t limit = link::kMaxStoredDescriptors, size_t limit_of_one = 0,
                   GroupOf group_of = {})
      : limit_(limit),
        limit_of_one_(limit_of_one == 0 ? limit / 4 : limit_of_one),
        group_of_(std::move(group_of)) {}

  /// In place of what was there. Errors: kInvalidArgument for a name that is empty or too long,
  /// kResourceExhausted.
  Status Put(const std::string& name, UniqueFd fd) {
    if (name.empty() || name.size() > link::kMaxStoredName) {
      return Fail(Code::kInvalidArgument, "store a descriptor: its name has {} bytes", name.size());
    }
    if (!fd) {
      return Fail(Code::kInvalidArgument, "store descriptor '{}': none came", name);
    }
    const auto found = fds_.find(name);
    if (found != fds_.end()) {
      found->second = std::move(fd);
      return {};
    }
    if (fds_.size() >= limit_) {
      return Fail(Code::kResourceExhausted, "store descriptor '{}': {} are stored", name, limit_);
    }
    if (Of(name) >= limit_of_one_) {
      return Fail(Code::kResourceExhausted,
                  "store descriptor '{}': {} of this container are stored", name, limit_of_one_);
    }
    if (fds_.size() >= limit_of_one_ && OfGroup(name) >= limit_of_one_) {
      return Fail(Code::kResourceExhausted, "store descriptor '{}': {} of this pod are stored",
                  name, limit_of_one_);
    }
    Enter(name, std::move(fd));
    return {};
  }

  /// A second descriptor of it. Of a socket that listens: of the connection that waits on
  /// it, which then takes its place; an engine that accepted it and died would have lost
  /// what was sent. Errors: kNotFound.
  Result<UniqueFd> Take(std::string_view name) {
    const auto found = fds_.find(name);
    if (found == fds_.end()) {
      return Fail(Code::kNotFound, "take descriptor '{}': not stored", name);
    }
    UniqueFd& stored = found->second;
    if (UniqueFd connection = AcceptFrom(stored)) {
      stored = std::move(connection);
    }
    return stored.Duplicate();
  }

  void Drop(std::string_view name) {
    const auto found = fds_.find(name);
    if (found == fds_.end()) {
      return;
    }
    fds_.erase(found);
    const auto owner = of_.find(link::ShareOf(name));
    if (--owner->second == 0) {
      of_.erase(owner);
    }
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    names.reserve(fds_.size());
    for (const auto& [name, fd] : fds_) {
      names.push_back(name);
    }
    return names;
  }

  size_t size() const { return fds_.size(); }

  std::vector<state::Stored> Save() const {
    std::vector<state::Stored> all;
    all.reserve(fds_.size());
    for (const auto& [name, fd] : fds_) {
      all.push_back({name, fd.get()});
    }
    return all;
  }

  /// Owner: takes the descriptors.
  void Restore(const std::vector<state::Stored>& all) {
    for (const state::Stored& one : all) {
      Enter(one.name, UniqueFd(one.fd));
    }
  }

 private:
  /// Empty: it does not listen, nobody has connected, or one would wait for it.
  static UniqueFd AcceptFrom(const UniqueFd& socket) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
        (fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0) {
      return UniqueFd();
    }
    return UniqueFd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  size_t Of(std::string_view name) const {
    const auto found = of_.find(link::ShareOf(name));
    return found == of_.end() ? 0 : found->second;
  }

  /// Of all containers of that one's group.
  size_t OfGroup(std::string_view name) const {
    const std::string group = group_of_ ? group_of_(link::ShareOf(name)) : std::string();
    size_t all = 0;
    for (const auto& [owner, count] : of_) {
      all += !group.empty() && group_of_(owner) == group ? count : 0;
    }
    return all;
  }

  void Enter(const std::string& name, UniqueFd fd) {
    fds_.emplace(name, std::move(fd));
    ++of_[std::string(link::ShareOf(name))];
  }

  size_t limit_;
  /// Of one owner, and of one group.
  size_t limit_of_one_;
  GroupOf group_of_;
  std::map<std::string, size_t, std::less<>> of_;
  std::map<std::string, UniqueFd, std::less<>> fds_;
};

}  // namespace gantry::keeper
