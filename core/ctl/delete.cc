// SPDX-License-Identifier: Apache-2.0
//
// The keeper deletes, with what it has for the case that there is no engine: an engine may be what
// cannot take these up. Whatever else runs is containerd's to delete.
#include "core/ctl/delete.h"

#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include <gantry/format.h>

#include "core/ctl/client.h"

namespace gantry::ctl {
namespace {

std::string DeletedText(const Arguments& arguments, const std::string& id, uint32_t status) {
  return arguments.json ? Format("{{\"id\":\"{}\",\"exit_status\":{}}}\n", id, status)
                        : Format("'{}' is deleted, its exit status was {}\n", id, status);
}

/// Ends all there is, the latest first: containers before the pod that they are in. One that
/// cannot be ended keeps none of the others; the first error tells.
Result<std::string> DeleteAll(const Arguments& arguments) {
  GANTRY_TRY(const auto keeper, QueryKeeper(arguments.address));
  std::string text;
  Status failed;
  for (const link::InstanceAdded& instance : keeper.instances | std::views::reverse) {
    const link::Announce& announced = instance.announce;
    if (!arguments.ns.empty() && announced.ns != arguments.ns) {
      continue;
    }
    const auto deleted = DeleteInstance(arguments.address, announced);
    if (deleted) {
      text += DeletedText(arguments, announced.id, deleted->status);
    } else if (failed) {
      failed = std::unexpected(Error(deleted.error()).Within(Format("delete '{}'", announced.id)));
    }
  }
  GANTRY_CHECK_OK(failed);
  return text;
}

}  // namespace

Result<std::string> Delete(const Arguments& arguments) {
  if (arguments.all == !arguments.operands.empty()) {
    return Fail(Code::kInvalidArgument, "delete: either an ID or --all");
  }
  if (arguments.all) {
    return DeleteAll(arguments);
  }
  const std::string& id = arguments.operands.front();
  GANTRY_TRY(const auto keeper, QueryKeeper(arguments.address));
  std::vector<link::Announce> found;
  for (const link::InstanceAdded& instance : keeper.instances) {
    if (instance.left_out && instance.announce.id == id &&
        (arguments.ns.empty() || instance.announce.ns == arguments.ns)) {
      found.push_back(instance.announce);
    }
  }
  if (found.empty()) {
    return Fail(Code::kNotFound,
                "delete '{}': nothing of that id is left out ('gantryctl status' shows what is); "
                "delete others with containerd's means",
                id);
  }
  if (found.size() > 1) {
    return Fail(Code::kInvalidArgument, "delete '{}': in several namespaces: say which, with -n",
                id);
  }
  GANTRY_TRY(const link::Deleted deleted, DeleteInstance(arguments.address, found.front()));
  return DeletedText(arguments, id, deleted.status);
}

}  // namespace gantry::ctl
