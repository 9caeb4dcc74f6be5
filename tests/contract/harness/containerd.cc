// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/containerd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/rpc/ttrpc.h"
#include "proto/containerd/events.pb.h"
#include "proto/containerd/forward.pb.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace event_pb = containerd::events;

/// What the topics have in common with this test's view of an event.
Event Decode(const containerd::services::events::ttrpc::v1::Envelope& envelope) {
  Event event;
  event.ns = envelope.namespace_();
  event.topic = envelope.topic();
  const std::string& bytes = envelope.event().value();
  if (event.topic == "/tasks/exit") {
    event_pb::TaskExit exit;
    exit.ParseFromString(bytes);
    event.container = exit.container_id();
    event.exec = exit.id() == exit.container_id() ? "" : exit.id();
    event.pid = exit.pid();
    event.status = exit.exit_status();
  } else if (event.topic == "/tasks/delete") {
    event_pb::TaskDelete deleted;
    deleted.ParseFromString(bytes);
    event.container = deleted.container_id();
    event.pid = deleted.pid();
    event.status = deleted.exit_status();
  } else if (event.topic == "/tasks/create") {
    event_pb::TaskCreate created;
    created.ParseFromString(bytes);
    event.container = created.container_id();
    event.pid = created.pid();
  } else {
    // The others begin with the container's id, some with the exec's behind it.
    event_pb::TaskExecStarted other;
    other.ParseFromString(bytes);
    event.container = other.container_id();
    event.exec = event.topic.starts_with("/tasks/exec-") ? other.exec_id() : "";
  }
  return event;
}

}  // namespace

std::string Event::Short() const {
  const std::string name = topic.substr(topic.rfind('/') + 1);
  return exec.empty() ? name : name + "(" + exec + ")";
}

FakeContainerd::FakeContainerd(std::string path)
    : path_(std::move(path)), wake_(eventfd(0, EFD_CLOEXEC)) {
  ComeBack();
}

FakeContainerd::~FakeContainerd() { GoAway(); }

void FakeContainerd::ComeBack() {
  ending_ = false;
  if (Result<UniqueFd> listener = ListenUnix(path_)) {
    listener_ = std::move(*listener);
  }
  thread_ = std::thread([this] { Serve(); });
}

void FakeContainerd::GoAway() {
  if (!thread_.joinable()) {
    return;
  }
  ending_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.join();
  eventfd_t value = 0;
  eventfd_read(wake_.get(), &value);
  listener_.reset();
  unlink(path_.c_str());
}

void FakeContainerd::Serve() {
  struct Connection {
    UniqueFd fd;
    rpc::FrameSplitter frames;
  };

  std::map<int, Connection> connections;
  while (!ending_) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [fd, connection] : connections) {
      fds.push_back({fd, POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), -1) < 0 || ending_) {
      continue;
    }
    if (auto accepted = AcceptUnix(listener_.get()); accepted && *accepted) {
      const int fd = (**accepted).get();
      connections[fd].fd = std::move(**accepted);
    }
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) {
        continue;
      }
      std::array<char, 65536> buffer;
      const ssize_t got = read(fds[i].fd, buffer.data(), buffer.size());
      if (got <= 0) {
        connections.erase(fds[i].fd);
        continue;
      }
      rpc::FrameSplitter& frames = connections[fds[i].fd].frames;
      frames.Feed({buffer.data(), static_cast<size_t>(got)});
      while (const auto frame = frames.Next()) {
        Answer(fds[i].fd, *frame);
      }
    }
  }
}

void FakeContainerd::Answer(int fd, const rpc::Frame& frame) {
  const Result<rpc::Request> request = rpc::DecodeRequest(frame.data);
  if (!request) {
    return;
  }
  Take(request->payload);
  const auto answer = rpc::EncodeFrame(frame.header.stream, rpc::FrameType::kResponse, 0,
                                       rpc::EncodeResponse(rpc::Response{}));
  if (answer) {
    IgnoreError(SendWithFds(fd, *answer, {}), "a sender that has gone sends again");
  }
}

void FakeContainerd::Take(const std::string& payload) {
  containerd::services::events::ttrpc::v1::ForwardRequest request;
  if (!request.ParseFromString(payload)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  events_.push_back(Decode(request.envelope()));
}

std::vector<Event> FakeContainerd::EventsOf(const std::string& container) const {
  const std::lock_guard lock(mutex_);
  std::vector<Event> found;
  std::ranges::copy_if(events_, std::back_inserter(found),
                       [&](const Event& event) { return event.container == container; });
  const auto repeated = std::ranges::unique(
      found, [](const Event& a, const Event& b) { return a.Short() == b.Short(); });
  found.erase(repeated.begin(), repeated.end());
  return found;
}

std::vector<std::string> FakeContainerd::WaitForTopics(const std::string& container,
                                                       size_t count) const {
  e2e::Eventually([&] { return EventsOf(container).size() >= count; },
                  e2e::Bound(std::chrono::seconds(10)));
  std::vector<std::string> topics;
  for (const Event& event : EventsOf(container)) {
    topics.push_back(event.Short());
  }
  return topics;
}

}  // namespace gantry::contract
