// SPDX-License-Identifier: Apache-2.0
//
// What the installer of a node asks of the cluster: labels of its node, and what runs there.
// Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "packaging/kubernetes/node_api/api_client.h"

namespace gantry::node_api {

/// A merge patch of a node, of `KEY=VALUE` and, for a label that is to go, `KEY-`.
/// Errors: kInvalidArgument: a word that is neither, or a name that is no label's.
Result<std::string> LabelPatch(const std::vector<std::string>& words);

/// Blocks: as `Call`.
Status SetLabels(const ApiServer& server, const std::string& node,
                 const std::vector<std::string>& words);

/// Pods of a page of a list that end when the node is drained: those that have ended, of DaemonSets
/// and of files of the node's are left out. `next`: where the list goes on; empty: nowhere.
struct PodPage {
  std::vector<std::string> names;
  std::string next;
};

/// Errors: kInvalidArgument: it is no list.
Result<PodPage> ReadPods(std::string_view json);

/// `NAMESPACE/NAME` of all such pods on the node. Blocks: as `Call`, for each 50 pods.
Result<std::vector<std::string>> PodsOf(const ApiServer& server, const std::string& node);

}  // namespace gantry::node_api
