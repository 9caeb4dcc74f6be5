// SPDX-License-Identifier: Apache-2.0
//
// What a guest says on its control connection, to a client with a call under way.
#include <sys/socket.h>

#include <string>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "plugins/vmm/agent/client.h"
#include "plugins/vmm/protocol/ids.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

vmm::AgentEvents Checks() {
  vmm::AgentEvents events;
  events.exited = [](const vmm::AgentExit& exit) {
    Require(vmm::protocol::IsId(exit.container), "an id is one");
    Require(exit.exec.empty() || vmm::protocol::IsId(exit.exec), "an exec's id is one");
    Require(exit.exit.status <= 255, "a status is one");
    Require(exit.exit.exited_at_ns > 0, "a time is one");
  };
  events.out_of_memory = [](const std::string& container, uint64_t kills) {
    Require(vmm::protocol::IsId(container) && kills > 0, "it has killed somebody's process");
  };
  events.log = [](const std::string& line) {
    Require(line.size() < 2048, "a line is bounded");
    for (const char c : line) {
      Require(static_cast<unsigned char>(c) >= ' ' && c != 0x7f, "a line is printable");
    }
  };
  return events;
}

}  // namespace

void FuzzOne(std::string_view input) {
  auto ends = UnixSocketPair();
  Require(ends.has_value(), "there are sockets");
  vmm::Greeted greeted;
  greeted.socket = std::move(ends->first);
  vmm::AgentClient client("fuzz", std::move(greeted), Checks());
  // Its deadline has passed: it is a call whose answer may come still.
  IgnoreError(client.Call(vmm::protocol::List{}, std::chrono::steady_clock::now()),
              "nobody has answered yet");
  bool lives = true;
  while (lives && !input.empty()) {
    const ssize_t sent =
        send(ends->second.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) {
      break;
    }
    input.remove_prefix(static_cast<size_t>(sent));
    lives = client.OnReadable();
  }
}

}  // namespace gantry::fuzz
