// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/service_manager.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/keeper/note.h"

namespace gantry::keeper {
namespace {

/// The variable's value, which is then no longer there.
std::string TakeVariable(const char* name) {
  const char* const found = std::getenv(name);
  std::string value = found == nullptr ? "" : found;
  unsetenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread.
  return value;
}

int64_t NumberIn(const std::string& text) {
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? number : 0;
}

}  // namespace

state::ServiceManager TakeServiceManager() {
  state::ServiceManager told;
  told.socket = TakeVariable("NOTIFY_SOCKET");
  const int64_t watchdog_us = NumberIn(TakeVariable("WATCHDOG_USEC"));
  const std::string whose = TakeVariable("WATCHDOG_PID");
  if (watchdog_us > 0 && (whose.empty() || NumberIn(whose) == getpid())) {
    told.watchdog_us = watchdog_us;
  }
  for (const char* name : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}) {
    TakeVariable(name);
  }
  return told;
}

ServiceManager::ServiceManager(async::Loop& loop, state::ServiceManager told)
    : loop_(loop), told_(std::move(told)) {}

ServiceManager::~ServiceManager() { loop_.Cancel(timer_); }

void ServiceManager::Ready() {
  Tell("READY=1");
  if (told_.watchdog_us > 0) {
    Pet();
  }
}

void ServiceManager::Stopping() { Tell("STOPPING=1"); }

void ServiceManager::Pet() {
  constexpr int kTimes = 3;
  Tell("WATCHDOG=1");
  timer_ = loop_.After(std::chrono::microseconds(told_.watchdog_us) / kTimes, [this] { Pet(); });
}

void ServiceManager::Tell(std::string_view what) const {
  if (told_.socket.empty()) {
    return;
  }
  if (const Status sent = SendDatagram(told_.socket, what); !sent) {
    Note("tell the service manager {}: {}", what, sent.error().message);
  }
}

}  // namespace gantry::keeper
