// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/network_handover.h"

#include <string>

#include <gantry/format.h>
#include <gantry/toolkit/net/network.h>

#include "plugins/gvisor/network/network_args.h"

namespace gantry::gvisor {
namespace {

/// Of the sentry's own, where the spec named none.
std::string PathOf(const Pod& pod, const PodRecord& record) {
  if (pod.flags().network == Network::kNone) {
    return {};
  }
  return record.netns.empty() ? Format("/proc/{}/ns/net", record.pid) : record.netns;
}

/// What was there before, as it was saved; else as it is, and from now on saved.
Result<net::PodNetwork> FindOut(Pod& pod, const std::string& path) {
  const PodRecord record = pod.record();
  if (!record.network.empty()) {
    return net::PodNetwork::FromJson(record.network);
  }
  GANTRY_TRY(net::PodNetwork found, net::ReadNetwork(path));
  if (found.HasInterfaces()) {
    GANTRY_CHECK_OK(pod.Change([&](PodRecord& changed) { changed.network = found.ToJson(); }));
  }
  return found;
}

}  // namespace

Result<std::optional<NetworkSetup>> TakeNetwork(Pod& pod, bool is_restore) {
  if (pod.flags().network == Network::kHost) {
    return std::nullopt;
  }
  const std::string path = PathOf(pod, pod.record());
  GANTRY_TRY(const net::PodNetwork network, FindOut(pod, path));
  NetworkOptions options = pod.flags().NetworkFlags();
  options.is_restore = is_restore;
  options.ipv6 = !pod.record().no_ipv6;
  NetworkSetup setup = {
      .args = NetworkArgs(network, options), .args_without_route_mtu = {}, .sockets = {}};
  options.route_mtu = false;
  setup.args_without_route_mtu = NetworkArgs(network, options);
  if (network.HasInterfaces()) {
    GANTRY_TRY(setup.sockets,
               net::OpenSockets(path, network,
                                {.host_gso = options.host_gso, .channels = options.channels}));
    GANTRY_CHECK_OK(net::TakeAddresses(path, network));
  }
  return setup;
}

Status GiveBackNetwork(Pod& pod) {
  const PodRecord record = pod.record();
  if (record.network.empty()) {
    return {};
  }
  GANTRY_TRY(const net::PodNetwork network, net::PodNetwork::FromJson(record.network));
  Status given = net::GiveBackAddresses(PathOf(pod, record), network);
  // A namespace that is gone took all with it; one that is another by now is not ours.
  if (!given && given.error().code != Code::kNotFound &&
      given.error().code != Code::kFailedPrecondition) {
    return given;
  }
  return {};
}

}  // namespace gantry::gvisor
