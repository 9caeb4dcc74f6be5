// SPDX-License-Identifier: Apache-2.0
//
// One coroutine for each containerd hands events to calls, each a coroutine of its own. An error
// is one of three: the connection is gone, then all that were under way go back into the queue
// and one pause, which doubles, holds for all; containerd refuses the event itself, then that one
// is parked with a pause of its own and the others go on; or it will never take it, then it is
// dropped and logged.
#include "core/events/publisher.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/log/log.h"
#include "core/rpc/client.h"

namespace gantry::events {
namespace {

constexpr std::string_view kService = "containerd.services.events.ttrpc.v1.Events";
constexpr std::string_view kMethod = "Forward";
constexpr std::string_view kScheme = "unix://";

std::string PathOf(std::string_view address) {
  if (address.starts_with(kScheme)) {
    address.remove_prefix(kScheme.size());
  }
  return std::string(address);
}

}  // namespace

/// One containerd. `Run` makes the connection and hands out events; each event
/// is one `Forward`. What they have in common is here, on one thread.
class Publisher {
 public:
  Publisher(async::Loop& loop, Outbox& outbox, std::string address, const PublisherOptions& options)
      : loop_(loop),
        outbox_(outbox),
        address_(std::move(address)),
        options_(options),
        backoff_(options.backoff_min) {}

  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher();

  void Start() { scope_.Spawn("publish to " + address_, Run()); }

  void Wake();
  void Nudge();
  async::Task<void> Stop();

 private:
  /// An event that containerd answered with an error that may pass.
  struct Failing {
    async::TimerId retry;
    std::chrono::nanoseconds pause{0};
  };

  async::Task<void> Run();
  async::Task<void> WaitUntilWoken(std::chrono::nanoseconds limit);
  async::Task<void> Connect();
  async::Task<void> Forward(Lease lease, std::shared_ptr<rpc::Client> client);
  void Answered(const Lease& lease, const Result<std::string>& answer, const rpc::Client& client);
  void ConnectionFailed(const Error& error);
  void Park(const Lease& lease, const Error& error);
  void Works();
  std::chrono::nanoseconds Longer(std::chrono::nanoseconds pause) const;
  void UnparkAll();

  async::Loop& loop_;
  Outbox& outbox_;
  std::string address_;
  PublisherOptions options_;
  std::shared_ptr<rpc::Client> client_;
  /// Pause after the next failure, and until when the last one's lasts.
  std::chrono::nanoseconds backoff_;
  async::TimePoint not_before_{};
  /// Since when containerd cannot be reached.
  std::optional<async::TimePoint> down_since_;
  size_t under_way_ = 0;
  std::map<uint64_t, Failing> failing_;
  bool stopping_ = false;
  bool woken_ = false;
  async::OneShot<void> wake_;
  async::Scope scope_;
};

Publisher::~Publisher() { UnparkAll(); }

void Publisher::Wake() {
  woken_ = true;
  wake_.Set();
}

void Publisher::Nudge() {
  not_before_ = {};
  UnparkAll();
  Wake();
}

async::Task<void> Publisher::Stop() {
  stopping_ = true;
  UnparkAll();
  Wake();
  co_await scope_.Join();
  client_.reset();
}

void Publisher::UnparkAll() {
  for (auto& [seq, failing] : failing_) {
    if (failing.retry) {
      loop_.Cancel(std::exchange(failing.retry, {}));
      outbox_.GiveBack(seq);
    }
  }
}

async::Task<void> Publisher::WaitUntilWoken(std::chrono::nanoseconds limit) {
  if (!woken_) {
    wake_ = async::OneShot<void>();
    co_await wake_.WaitFor(loop_, limit);
  }
  woken_ = false;
}

async::Task<void> Publisher::Run() {
  while (!stopping_) {
    if (under_way_ >= options_.parallel || !outbox_.Ready(address_)) {
      co_await WaitUntilWoken(std::chrono::nanoseconds::max());
      continue;
    }
    if (const async::TimePoint now = loop_.Now(); now < not_before_) {
      co_await WaitUntilWoken(not_before_ - now);
      continue;
    }
    if (!client_ || client_->closed()) {
      co_await Connect();
      continue;
    }
    if (std::optional<Lease> lease = outbox_.Take(address_)) {
      ++under_way_;
      scope_.Spawn("forward", Forward(std::move(*lease), client_));
    }
  }
}

async::Task<void> Publisher::Connect() {
  Result<std::unique_ptr<rpc::Client>> client =
      co_await rpc::Client::Connect(loop_, PathOf(address_), options_.timeout);
  if (!client) {
    ConnectionFailed(client.error());
    co_return;
  }
  client_ = std::move(*client);
}

async::Task<void> Publisher::Forward(Lease lease, std::shared_ptr<rpc::Client> client) {
  rpc::Metadata metadata;
  metadata.emplace_back(rpc::kNamespaceKey, lease.event.subject.ns.str());
  const Result<std::string> answer =
      co_await client->Call(std::string(kService), std::string(kMethod), EncodeForward(lease.event),
                            options_.timeout, std::move(metadata));
  --under_way_;
  Answered(lease, answer, *client);
  Wake();
}

void Publisher::Answered(const Lease& lease, const Result<std::string>& answer,
                         const rpc::Client& client) {
  if (answer) {
    failing_.erase(lease.seq);
    outbox_.Published(lease.seq);
    Works();
    return;
  }
  const Error& error = answer.error();
  if (error.code == Code::kInvalidArgument) {
    LogWarning({{"ns", lease.event.subject.ns.str()}, {"id", lease.event.subject.container.str()}},
               "event '{}' is dropped, containerd refuses it: {}", lease.event.topic,
               error.message);
    failing_.erase(lease.seq);
    outbox_.Rejected(lease.seq);
    Works();
    return;
  }
  if (!client.closed()) {
    Park(lease, error);
    return;
  }
  outbox_.GiveBack(lease.seq);
  // All that were under way fail at once; that is one failure.
  if (client_.get() == &client) {
    client_.reset();
    ConnectionFailed(error);
  }
}

std::chrono::nanoseconds Publisher::Longer(std::chrono::nanoseconds pause) const {
  return std::clamp(pause * 2, options_.backoff_min, options_.backoff_max);
}

void Publisher::ConnectionFailed(const Error& error) {
  if (!down_since_) {
    down_since_ = loop_.Now();
    LogWarning({{"address", address_}}, "events wait, containerd cannot be reached: {}",
               error.message);
  }
  not_before_ = loop_.Now() + backoff_;
  backoff_ = Longer(backoff_);
}

void Publisher::Park(const Lease& lease, const Error& error) {
  Failing& failing = failing_[lease.seq];
  failing.pause = Longer(failing.pause);
  LogWarning({{"ns", lease.event.subject.ns.str()}, {"id", lease.event.subject.container.str()}},
             "event '{}' is tried again, containerd answered: {}", lease.event.topic,
             error.message);
  if (stopping_) {
    outbox_.GiveBack(lease.seq);
    return;
  }
  failing.retry = loop_.After(failing.pause, [this, seq = lease.seq] {
    failing_[seq].retry = {};
    outbox_.GiveBack(seq);
    Wake();
  });
}

void Publisher::Works() {
  backoff_ = options_.backoff_min;
  not_before_ = {};
  if (down_since_) {
    LogInfo(
        {{"address", address_}}, "events are published again, after {} ms",
        std::chrono::duration_cast<std::chrono::milliseconds>(loop_.Now() - *down_since_).count());
    down_since_.reset();
  }
}

Publishers::Publishers(async::Loop& loop, std::unique_ptr<Outbox> outbox, PublisherOptions options)
    : loop_(loop), outbox_(std::move(outbox)), options_(options) {}

Publishers::~Publishers() = default;

Publisher& Publishers::At(const std::string& address) {
  std::unique_ptr<Publisher>& slot = publishers_[address];
  if (!slot) {
    slot = std::make_unique<Publisher>(loop_, *outbox_, address, options_);
    slot->Start();
  }
  return *slot;
}

void Publishers::Start() {
  for (const std::string& address : outbox_->Addresses()) {
    At(address).Wake();
  }
}

void Publishers::Publish(Event event) {
  loop_.AssertLoopThread();
  if (observer_) {
    observer_(event);
  }
  const Subject subject = event.subject;
  if (subject.address.empty()) {
    LogDebug("event '{}' has nobody to go to", event.topic);
    return;
  }
  if (Status status = outbox_->Add(std::move(event)); !status) {
    LogWarning({{"ns", subject.ns.str()}, {"id", subject.container.str()}}, "{}",
               status.error().message);
    return;
  }
  if (!stopping_) {
    At(subject.address).Wake();
  }
}

void Publishers::Nudge(const std::string& address) {
  loop_.AssertLoopThread();
  const auto found = publishers_.find(address);
  if (found != publishers_.end()) {
    found->second->Nudge();
  }
}

async::Task<void> Publishers::Stop() {
  stopping_ = true;
  for (auto& [address, publisher] : publishers_) {
    co_await publisher->Stop();
  }
}

}  // namespace gantry::events
