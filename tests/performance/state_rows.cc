// SPDX-License-Identifier: Apache-2.0
//
// State, the call that containerd makes most, over many connections at once:
// each sends the next when its answer has come.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/rpc/ttrpc.h"
#include "tests/performance/callers.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr int kCallsInATurn = 1000;

class StateTalk final : public Talk {
 public:
  StateTalk(std::string ns, std::string id) : ns_(std::move(ns)), id_(std::move(id)) {}

  Result<std::string> Ask() override {
    ProtoWriter id;
    id.Text(1, id_);
    const rpc::Request request{std::string(kTaskService),
                               "State",
                               id.Take(),
                               std::chrono::seconds(2),
                               {{std::string(rpc::kNamespaceKey), ns_}}};
    const uint32_t stream = std::exchange(stream_, stream_ + 2);
    return rpc::EncodeFrame(stream, rpc::FrameType::kRequest, 0, rpc::EncodeRequest(request));
  }

  Result<bool> Hear(std::string_view bytes) override {
    frames_.Feed(bytes);
    const auto frame = frames_.Next();
    if (!frame) {
      return false;
    }
    GANTRY_CHECK_OK(rpc::DecodeResponse(frame->data));
    return true;
  }

 private:
  const std::string ns_;
  const std::string id_;
  rpc::FrameSplitter frames_;
  uint32_t stream_ = 1;
};

Result<Callers> Connect(const Lab& lab, const Instance& instance, size_t count) {
  Callers callers;
  for (size_t i = 0; i < count; ++i) {
    GANTRY_TRY(UniqueFd socket, ConnectUnix(instance.socket()));
    callers.Add(std::move(socket), std::make_unique<StateTalk>(lab.ns(), instance.id()));
  }
  return callers;
}

Row StateRow(const std::string& id, const std::string& what, double ours, double peer) {
  return {
      .id = id, .what = what, .unit = "us", .ours = ours, .peer = peer, .target = "", .met = {}};
}

Status StateRowsAt(size_t connections, const Extent& extent, Callers ours, Callers peer,
                   Report& report) {
  std::vector<double> our_times;
  std::vector<double> peer_times;
  for (int round = -1; round < extent.rounds; ++round) {
    const bool ours_first = round % 2 == 0;
    GANTRY_TRY(const auto first, (ours_first ? ours : peer).Turn(kCallsInATurn));
    GANTRY_TRY(const auto second, (ours_first ? peer : ours).Turn(kCallsInATurn));
    if (round >= 0) {
      auto& to_first = ours_first ? our_times : peer_times;
      auto& to_second = ours_first ? peer_times : our_times;
      to_first.insert(to_first.end(), first.begin(), first.end());
      to_second.insert(to_second.end(), second.begin(), second.end());
    }
  }
  const std::string number = std::to_string(connections);
  const std::string where =
      " of State, " + number + (connections == 1 ? " connection" : " connections");
  report.Add(StateRow("state-" + number, "p50" + where, Median(our_times), Median(peer_times))
                 .RatioAtMost(1));
  constexpr double kTail = 0.99;
  report.Add(StateRow("state-" + number + "-p99", "p99" + where, Percentile(our_times, kTail),
                      Percentile(peer_times, kTail))
                 .RatioBelow(1));
  return {};
}

}  // namespace

Status StateRows(Lab& lab, const Extent& extent, Report& report) {
  Instance ours(lab, lab.Gantry("runc"));
  Instance peer(lab, lab.Stock("runc"));
  GANTRY_CHECK_OK(ours.Run({"sleep", "100000"}));
  GANTRY_CHECK_OK(peer.Run({"sleep", "100000"}));
  for (const size_t connections : {1, 8, 64}) {
    GANTRY_TRY(Callers to_ours, Connect(lab, ours, connections));
    GANTRY_TRY(Callers to_peer, Connect(lab, peer, connections));
    GANTRY_CHECK_OK(
        StateRowsAt(connections, extent, std::move(to_ours), std::move(to_peer), report));
  }
  GANTRY_CHECK_OK(ours.End());
  return peer.End();
}

}  // namespace gantry::bench
