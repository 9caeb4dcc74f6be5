// SPDX-License-Identifier: Apache-2.0
//
// The client's socket is in an epoll of its own, which is what is watched: so a connection may
// come and go while the watch stays. Whoever takes a socket out of it does so before he lets go of
// its client.
#include "plugins/vmm/machine/agent_link.h"

#include <sys/epoll.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <gantry/format.h>

namespace gantry::vmm {

Result<std::unique_ptr<AgentLink>> AgentLink::On(SandboxContext& context, std::string name,
                                                 UniqueFd listener, std::string session,
                                                 AgentLinkEvents events) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return FailErrno(errno, "watch the guest agent of '{}'", name);
  }
  GANTRY_TRY(auto newcomers, Newcomers::On(std::move(listener)));
  std::unique_ptr<AgentLink> link(new AgentLink(context, std::move(name), std::move(newcomers),
                                                std::move(epoll), std::move(session),
                                                std::move(events)));
  GANTRY_TRY(link->reads_,
             context.WatchReadable(link->epoll_.get(), [raw = link.get()] { raw->OnSaid(); }));
  return link;
}

AgentLink::AgentLink(SandboxContext& context, std::string name,
                     std::unique_ptr<Newcomers> newcomers, UniqueFd epoll, std::string session,
                     AgentLinkEvents events)
    : context_(context),
      name_(std::move(name)),
      newcomers_(std::move(newcomers)),
      epoll_(std::move(epoll)),
      events_(std::move(events)),
      session_(std::move(session)) {}

void AgentLink::AwaitLoss(Deadline deadline) {
  MutexLock lock(mutex_);
  while (client_ && came_.wait_until(lock.native(), deadline) != std::cv_status::timeout) {
  }
}

// An event that asks the agent is not waited for long.
void AgentLink::Stop() {
  Close({Code::kUnavailable, 0, "the engine lets go of it", {}});
  dials_.reset();
  reads_.reset();
}

Status AgentLink::Watch() {
  GANTRY_TRY(dials_, context_.WatchReadable(newcomers_->fd(), [this] { OnDial(); }));
  return {};
}

void AgentLink::Take(Greeted greeted) {
  AgentEvents events;
  events.exited = events_.exited;
  events.out_of_memory = events_.out_of_memory;
  events.log = events_.log;
  const protocol::Hello hello = greeted.hello;
  const std::string session = greeted.session;
  auto client = std::make_shared<AgentClient>(name_, std::move(greeted), std::move(events));
  std::shared_ptr<AgentClient> before;
  {
    const MutexLock lock(mutex_);
    if (closed_) {
      return;
    }
    before = std::exchange(client_, client);
    if (before) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, before->fd(), nullptr);
    }
    session_ = session;
    hello_ = hello;
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client->fd(), &event);
    came_.notify_all();
  }
  if (before) {
    before->Close();
  }
}

void AgentLink::OnDial() {
  auto heard = newcomers_->OnReadable(session());
  if (!heard && lines_.Take(std::chrono::steady_clock::now().time_since_epoch().count())) {
    context_.Log(LogLevel::kDebug, Format("somebody in the guest dialled who is not its agent: {}",
                                          heard.error().message));
  }
  std::optional<Greeted> agent = heard ? std::move(*heard) : std::nullopt;
  if (!agent) {
    return;
  }
  Take(*std::move(agent));
  if (events_.again) {
    events_.again();
  }
}

void AgentLink::OnSaid() {
  std::shared_ptr<AgentClient> client;
  {
    const MutexLock lock(mutex_);
    client = client_;
  }
  if (client && !client->OnReadable()) {
    Lost(client.get());
  }
}

void AgentLink::Lost(const AgentClient* client) {
  std::shared_ptr<AgentClient> last;
  {
    const MutexLock lock(mutex_);
    if (client_.get() != client) {
      return;
    }
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client->fd(), nullptr);
    last = std::exchange(client_, nullptr);
    came_.notify_all();
    if (closed_) {
      return;
    }
  }
  if (events_.lost) {
    events_.lost();
  }
}

Result<std::string> AgentLink::Ask(protocol::Kind kind, std::string body, Deadline deadline) {
  std::shared_ptr<AgentClient> client;
  std::optional<Error> closed;
  {
    MutexLock lock(mutex_);
    while (!client_ && !closed_ &&
           came_.wait_until(lock.native(), deadline) != std::cv_status::timeout) {
    }
    client = client_;
    closed = closed_;
  }
  const auto within = [&](Error error) {
    return std::unexpected(std::move(error).Within(
        Format("ask the guest agent of '{}' for {}", name_, protocol::NameOf(kind))));
  };
  if (closed) {
    return within({Code::kUnavailable, 0, closed->message, {}});
  }
  if (!client) {
    return within(
        {Code::kDeadlineExceeded, 0, "it has no connection, and has not dialled again", {}});
  }
  return client->Ask(kind, std::move(body), deadline);
}

Status AgentLink::Post(protocol::Kind kind, std::string body,
                       std::function<void(Result<std::string>)> answered) {
  std::shared_ptr<AgentClient> client;
  {
    const MutexLock lock(mutex_);
    client = client_;
  }
  return client
             ? client->Post(kind, std::move(body), std::move(answered))
             : Fail(Code::kUnavailable, "ask the guest agent of '{}' for {}: it is not connected",
                    name_, protocol::NameOf(kind));
}

void AgentLink::Close(const Error& why) {
  std::shared_ptr<AgentClient> client;
  {
    const MutexLock lock(mutex_);
    if (closed_) {
      return;
    }
    closed_ = why;
    client = client_;
    came_.notify_all();
  }
  if (client) {
    client->Close();
  }
}

bool AgentLink::connected() const {
  const MutexLock lock(mutex_);
  return client_ != nullptr;
}

std::string AgentLink::session() const {
  const MutexLock lock(mutex_);
  return session_;
}

std::optional<protocol::Hello> AgentLink::hello() const {
  const MutexLock lock(mutex_);
  return hello_;
}

}  // namespace gantry::vmm
