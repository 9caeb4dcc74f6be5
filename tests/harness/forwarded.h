// SPDX-License-Identifier: Apache-2.0
//
// Clients of a forwarded port: connections to where containerd makes them, to the loopback of the
// pod's network namespace on the host. No wait is longer than half a minute.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include <gantry/unique_fd.h>

namespace gantry::e2e {

/// For a shell in the pod: answers each line on that port, and when there are no more says so.
std::string EchoScript(uint16_t port);

/// That of this process.
UniqueFd OpenNetns(pid_t pid);
/// Fails the test when it is refused.
UniqueFd ConnectIn(const UniqueFd& netns, uint16_t port);

void Say(const UniqueFd& client, const std::string& text);
std::string Hear(const UniqueFd& client, size_t size);
/// Up to the end, and the errno of that.
std::pair<std::string, int> HearAll(const UniqueFd& client);
/// Of `EchoScript`.
void ExpectAnswer(const UniqueFd& client, const std::string& word);

}  // namespace gantry::e2e
