// SPDX-License-Identifier: Apache-2.0
//
// A container of these tests: a child with namespaces of its own, in whose root something looks
// about and tells what it sees.
#pragma once

#include <functional>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/container/rootfs.h>

namespace gantry::container {

/// Where a container is made.
enum class World {
  /// By root, without a user namespace.
  kRoot,
  /// By root, who enters a user namespace of the container's between `Open` and `Mount`.
  kUserNamespace,
  /// By somebody who is in a user namespace from the beginning.
  kInside,
};

std::string NameOf(World world);

/// The ids from 0 to 65535 of a container in `kUserNamespace` are those from here on.
inline constexpr unsigned kFirstId = 100000;

/// The steps of one container, which a test may do otherwise.
struct Steps {
  EnterBy by = EnterBy::kPivot;
  /// Before everything, in the child, on the node's side.
  std::function<void()> first;
  /// Before `Open`, in namespaces of the maker's.
  bool own_mounts_first = false;
  /// Between `Enter` and `Seal`.
  std::function<Status(Rootfs&)> entered;
  bool seal = true;
};

/// What `look` says of the container from inside, or `CODE: message` of what failed.
std::string InContainer(World world, const RootfsRequest& request,
                        const std::function<std::string()>& look, const Steps& steps = {});

/// What `work` says in a child with a mount namespace of its own.
std::string InMountNamespace(const std::function<std::string()>& work);

/// The whole of a file; `errno name` where that cannot be read.
std::string TextOf(const std::string& path);
/// Its lines that have `part` in them. Of the mounts of a node so many as a test is about: others
/// come and go, in a namespace of the test's too, since a folder's removal ends mounts everywhere.
std::string LinesWith(const std::string& path, const std::string& part);
/// The errno's name of an attempt to make a file at `path`, which is removed again; `OK`.
std::string TryToMake(const std::string& path);
/// The same for opening an existing one for writing.
std::string TryToWrite(const std::string& path);
/// `MAJOR:MINOR`, `d`, `f` or `l -> target` with the mode: what is there itself.
std::string Kind(const std::string& path);
/// The line of mountinfo of the mount at `path`: `options - type source`, of the uppermost one.
std::string MountAt(const std::string& path);
/// With the optional fields about propagation: `shared`, `master`, or neither.
std::string PropagationAt(const std::string& path);

}  // namespace gantry::container
