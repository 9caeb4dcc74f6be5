// SPDX-License-Identifier: Apache-2.0
//
// A group: the instances whose calls come on one socket.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/ids.h>

#include "core/async/account.h"

namespace gantry::task {

/// Whose sockets an instance's calls come on: one per pod or stand-alone
/// container, from the keeper's announcement.
struct Group {
  std::string address;
  std::string grpc_address;
  std::string ttrpc_address;
  Namespace ns;
  /// The pod's id, or the container's own.
  std::string id;
  std::string handler;
  std::string options_type_url;
  std::string options;
  /// What the engine does and holds for its sandbox.
  async::AccountPtr account;
  /// Of that, what its execs are made of, and the same of all groups.
  async::AccountPtr exec_specs;
  async::AccountPtr all_exec_specs;
};

using GroupPtr = std::shared_ptr<const Group>;

/// What an instance is looked up by: ids repeat across namespaces and containerds.
struct InstanceKey {
  std::string grpc_address;
  std::string ns;
  std::string id;
  auto operator<=>(const InstanceKey&) const = default;
};

InstanceKey KeyOf(const Group& group, std::string_view id);

}  // namespace gantry::task
