// SPDX-License-Identifier: Apache-2.0
//
// gantry-node-api: what the installer's script of a node asks of the cluster.
#include <iostream>
#include <string>
#include <vector>

#include "packaging/kubernetes/node_api/node.h"

namespace gantry::node_api {
namespace {

constexpr char kHelp[] = R"(usage: gantry-node-api labels NODE KEY=VALUE... KEY-...
       gantry-node-api pods NODE

labels sets labels of a node, and removes those with a '-'. pods lists the pods on it that would
end if it was drained. The cluster is that of the pod that this runs in; $GANTRY_SERVICE_ACCOUNT:
the folder with its token and ca.crt.
)";

Status Run(const std::vector<std::string>& words) {
  GANTRY_TRY(const ApiServer server, ApiServer::OfThisPod());
  if (words[0] == "labels") {
    return SetLabels(server, words[1], {words.begin() + 2, words.end()});
  }
  GANTRY_TRY(const std::vector<std::string> pods, PodsOf(server, words[1]));
  for (const std::string& pod : pods) {
    std::cout << pod << "\n";
  }
  return {};
}

}  // namespace
}  // namespace gantry::node_api

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool labels = words.size() > 2 && words[0] == "labels";
  const bool pods = words.size() == 2 && words[0] == "pods";
  if (!labels && !pods) {
    std::cerr << gantry::node_api::kHelp;
    return 2;
  }
  const gantry::Status done = gantry::node_api::Run(words);
  if (!done) {
    std::cerr << "gantry-node-api: " << done.error().message << "\n";
    return 1;
  }
  return 0;
}
