// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/log/log.h"
#include "core/metrics/listen.h"
#include "core/os/fifo.h"

namespace gantry::metrics {
namespace {

constexpr int kAcceptsPerTurn = 16;
/// Where there is no descriptor to be had.
constexpr std::chrono::seconds kAcceptPause(1);
constexpr std::chrono::seconds kLongestPause(30);

/// Lets `done` be called on any thread.
Pages::Look OnLoop(async::Loop& loop, Pages::Look look) {
  return [&loop, look = std::move(look)](Pages::Done done) mutable {
    look([&loop, done = std::move(done)](Pages::Finish finish) mutable {
      loop.Post([done = std::move(done), finish = std::move(finish)]() mutable {
        done(std::move(finish));
      });
    });
  };
}

}  // namespace

Listener::Listener(async::Loop& loop, Options options, Pages::Look look)
    : loop_(loop),
      options_(std::move(options)),
      pages_(
          loop,
          [this, look = std::move(look)](Pages::Done done) mutable {
            DropOldPages();
            look(std::move(done));
          },
          options_.fresh) {}

Listener::~Listener() {
  loop_.Unwatch(watch_);
  loop_.Cancel(timer_);
  for (const auto& [key, connection] : connections_) {
    connection->Close();
  }
}

void Listener::Begin() {
  Result<UniqueFd> listening = Listen(options_.address);
  if (!listening) {
    LogError("serve metrics: {}; tried again in {} s", listening.error().message,
             std::chrono::duration_cast<std::chrono::seconds>(pause_).count());
    timer_ = loop_.After(pause_, [this] { Begin(); });
    pause_ = std::min<async::Duration>(pause_ * 2, kLongestPause);
    return;
  }
  socket_ = std::move(*listening);
  watch_ = loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  LogInfo("metrics are served at '{}'", options_.address);
}

void Listener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Result<std::optional<UniqueFd>> accepted = AcceptUnix(socket_.get());
    if (!accepted) {
      LogWarning("accept a scraper's connection: {}", accepted.error().message);
      loop_.Rearm(watch_, 0);
      timer_ = loop_.After(kAcceptPause, [this] { loop_.Rearm(watch_, EPOLLIN); });
      return;
    }
    std::optional<UniqueFd>& socket = *accepted;
    if (!socket) {
      return;
    }
    MakeRoom();
    auto connection = std::make_shared<Connection>(
        loop_, std::move(*socket), pages_, options_.limits,
        [this](const Connection& closed) { connections_.erase(&closed); });
    connections_.emplace(connection.get(), connection);
    connection->Begin();
  }
}

void Listener::MakeRoom() {
  if (connections_.size() < kMostConnections) {
    return;
  }
  const auto first = std::ranges::min_element(connections_, {}, [](const auto& one) {
    return std::tuple(!one.second->idle(), one.second->since());
  });
  first->second->Close();
  connections_.erase(first);
}

void Listener::DropOldPages() {
  std::map<Page, async::TimePoint> pages;
  for (const auto& [key, connection] : connections_) {
    if (connection->page()) {
      const auto [page, entered] = pages.emplace(connection->page(), connection->since());
      page->second = std::min(page->second, connection->since());
    }
  }
  if (pages.size() <= kMostPages) {
    return;
  }
  const Page oldest =
      std::ranges::min_element(pages, {}, [](const auto& one) { return one.second; })->first;
  std::erase_if(connections_, [&](const auto& one) {
    const bool slow = one.second->page() == oldest;
    if (slow) {
      one.second->Close();
    }
    return slow;
  });
}

Server::Server(Listener::Options options, Pages::Look look)
    : listener_(loop_, std::move(options), OnLoop(loop_, std::move(look))), thread_([this] {
        os::BlockSignals();
        listener_.Begin();
        loop_.Run();
      }) {}

Server::~Server() {
  loop_.Stop();
  thread_.join();
}

}  // namespace gantry::metrics
