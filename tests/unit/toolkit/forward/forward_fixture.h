// SPDX-License-Identifier: Apache-2.0
//
// For the tests of forwarding: network namespaces with a loopback, and TCP in them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <gantry/unique_fd.h>

namespace gantry::forward {

/// New, with its loopback up. None: not possible here.
UniqueFd NetnsWithLoopback();
/// Gives its loopback another address.
bool AddAddress(const UniqueFd& netns, const std::string& address);
/// To be opened as a pod's.
std::string PathOfFd(const UniqueFd& fd);

/// A connected socket, or the errno; `address` is of either family. Null `netns`: the test's.
std::pair<UniqueFd, int> ConnectIn(const UniqueFd* netns, const std::string& address,
                                   uint16_t port);
/// A listener, and its port.
std::pair<UniqueFd, uint16_t> ListenIn(const UniqueFd* netns, const std::string& address,
                                       uint16_t port = 0, int backlog = 16);
/// Waits for it.
UniqueFd AcceptFrom(const UniqueFd& listener);

/// Whole. False: the peer has left.
bool SendText(const UniqueFd& socket, const std::string& text);
/// To the end; `error`: the errno it ended with, or 0.
std::string ReadAll(const UniqueFd& socket, int* error = nullptr);
std::string ReadSome(const UniqueFd& socket, size_t size);

}  // namespace gantry::forward
