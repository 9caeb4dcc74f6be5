// SPDX-License-Identifier: Apache-2.0
//
// State, the call that containerd makes most, over many connections at once:
// each sends the next when its answer has come.
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <vector>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/splice.h"
#include "core/rpc/ttrpc.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr int kSilenceMs = 10000;
constexpr int kCallsInATurn = 1000;

struct Connection {
  UniqueFd socket;
  rpc::FrameSplitter frames;
  uint32_t stream = 1;
  Clock::time_point sent;
};

/// A container and its connections. Thread: one.
class Callers {
 public:
  Callers(Lab& lab, const Side& side) : instance_(lab, side), ns_(lab.ns()) {}

  Status SetUp() { return instance_.Run({"sleep", "100000"}); }

  Status Connect(size_t count) {
    connections_.clear();
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    connections_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      GANTRY_TRY(connections_[i].socket, ConnectUnix(instance_.socket()));
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connections_[i].socket.get(), &event);
    }
    return {};
  }

  /// `calls` in all; their times in microseconds.
  Result<std::vector<double>> Turn(int calls) {
    std::vector<double> times;
    int sent = 0;
    for (Connection& connection : connections_) {
      GANTRY_CHECK_OK(Send(connection));
      ++sent;
    }
    std::array<epoll_event, 64> events;
    int waiting = sent;
    while (waiting > 0) {
      const int ready = epoll_wait(epoll_.get(), events.data(), events.size(), kSilenceMs);
      if (ready <= 0) {
        return Fail(Code::kDeadlineExceeded, "call State: no answer");
      }
      for (int i = 0; i < ready; ++i) {
        Connection& connection = connections_[events.at(static_cast<size_t>(i)).data.u64];
        GANTRY_TRY(const bool answered, Receive(connection, times));
        if (answered && sent < calls) {
          GANTRY_CHECK_OK(Send(connection));
          ++sent;
        } else if (answered) {
          --waiting;
        }
      }
    }
    return times;
  }

  Status End() {
    connections_.clear();
    return instance_.End();
  }

 private:
  Status Send(Connection& connection) {
    ProtoWriter id;
    id.Text(1, instance_.id());
    const rpc::Request request{std::string(kTaskService),
                               "State",
                               id.Take(),
                               std::chrono::seconds(2),
                               {{std::string(rpc::kNamespaceKey), ns_}}};
    GANTRY_TRY(const std::string frame,
               rpc::EncodeFrame(connection.stream, rpc::FrameType::kRequest, 0,
                                rpc::EncodeRequest(request)));
    connection.stream += 2;
    connection.sent = Clock::now();
    GANTRY_CHECK_OK(SendWithFds(connection.socket.get(), frame, {}));
    return {};
  }

  Result<bool> Receive(Connection& connection, std::vector<double>& times) {
    std::array<char, 4096> buffer;
    GANTRY_TRY(const Transfer got, os::ReadSome(connection.socket.get(), buffer));
    if (got.end) {
      return Fail(Code::kUnavailable, "call State: the shim closed the connection");
    }
    connection.frames.Feed(std::string_view(buffer.data(), got.bytes));
    const auto frame = connection.frames.Next();
    if (!frame) {
      return false;
    }
    times.push_back(MillisecondsSince(connection.sent) * 1000);
    GANTRY_CHECK_OK(rpc::DecodeResponse(frame->data));
    return true;
  }

  Instance instance_;
  std::string ns_;
  UniqueFd epoll_;
  std::vector<Connection> connections_;
};

Row StateRow(const std::string& id, const std::string& what, double ours, double peer) {
  return {
      .id = id, .what = what, .unit = "us", .ours = ours, .peer = peer, .target = "", .met = {}};
}

Status StateRowsAt(size_t connections, const Extent& extent, Callers& ours, Callers& peer,
                   Report& report) {
  GANTRY_CHECK_OK(ours.Connect(connections));
  GANTRY_CHECK_OK(peer.Connect(connections));
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
  Callers ours(lab, lab.Gantry("runc"));
  Callers peer(lab, lab.Stock("runc"));
  GANTRY_CHECK_OK(ours.SetUp());
  GANTRY_CHECK_OK(peer.SetUp());
  for (const size_t connections : {1, 8, 64}) {
    GANTRY_CHECK_OK(StateRowsAt(connections, extent, ours, peer, report));
  }
  GANTRY_CHECK_OK(ours.End());
  return peer.End();
}

}  // namespace gantry::bench
