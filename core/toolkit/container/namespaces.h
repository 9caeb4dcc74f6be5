// SPDX-License-Identifier: Apache-2.0
//
// `linux.namespaces`: those that are joined, those that are new, and the ids and clocks of new
// ones.
// Source: namespaces(7), user_namespaces(7), time_namespaces(7), setns(2), unshare(2).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

struct JoinedNamespace {
  std::string type;
  std::string path;
  /// CLONE_NEWNET and so on; of a process all that are joined.
  int flag = 0;
  UniqueFd fd;
};

struct Namespaces {
  /// CLONE_NEW* of those that are new.
  int fresh = 0;
  std::vector<JoinedNamespace> joined;

  /// The container has a namespace of this kind that is not the maker's: a new one, or one that it
  /// joins.
  bool has(int flag) const;
};

/// Opens what is to be joined; nothing is entered. A path that is the maker's own namespace is
/// left out. Errors: kInvalidArgument: what is there is no namespace, or one of another kind;
/// kNotFound and others of the errno, with the path.
Result<Namespaces> OpenNamespaces(const std::vector<oci::LinuxNamespace>& list);

/// Those of the process that `pidfd` is of, whose number is `pid`, but for the maker's own; joined
/// all at once by that descriptor. Errors: the errno's.
Result<Namespaces> NamespacesOf(int pidfd, pid_t pid);

/// Joins all but the pid namespace first, a user namespace behind those that it takes the right to
/// join from, and before those that it gives the right to. In a user namespace the process becomes
/// its root. Thread: the only one of its process.
Status JoinNamespaces(const std::vector<JoinedNamespace>& joined);

/// The id outside that `id` has there; none where it is not mapped.
std::optional<uint32_t> HostIdOf(uint32_t id, const std::vector<IdMapping>& mappings);

/// Of process `pid`, which is in a new user namespace. By who has the rights over these ids.
Status WriteIdMaps(int proc, pid_t pid, const oci::LinuxSpec& spec);

/// Of process `pid`, which has made a time namespace that nobody has entered.
Status WriteClocks(int proc, pid_t pid, const std::map<std::string, oci::TimeOffset>& offsets);

/// All ids become 0 of the user namespace that the process is in, and it has no groups.
Status BecomeRoot();

/// The loopback of the network namespace is up. Source: netdevice(7).
Status RaiseLoopback();

}  // namespace gantry::container
