// SPDX-License-Identifier: Apache-2.0
//
// What the fake remote backend and its sandbox process say to each other.
//
// The two are joined by one connection, the door, which the backend keeps in
// the engine's descriptor store. Nothing goes through it but new connections:
// for each call the backend makes a pair of sockets and sends one end through
// the door (one byte, one descriptor). So an engine that is killed at any
// moment leaves the door in order, and its calls end with it.
//
// On a call's connection go one question and one answer; on the one that asks
// for "events", reports without end. Each is a JSON object:
//
//     events                                   exit{container, exec, status, at},
//                                              oom{container}: what was not
//                                              acknowledged before comes first
//     create  container spec rootfs            fds: the process's 0, 1, 2
//     exec    container exec process           the same
//       -> number foreign                      fd with a terminal: its master
//     start   container
//     state   container exec -> state number foreign status at
//                                              fd: a master that is not confirmed
//     console container exec                   the master has arrived
//     kill    container exec signal [all | foreground]
//     pause, resume, update{resources}, stats, processes   container
//     delete  container exec                   ends it and acknowledges its end
//     shutdown
//
// `foreign`: the terminal is the controlling terminal of nobody, as that of a process
// in a sentry is. So are those of containers with the annotation
// `remote.test/foreign-console`, and of their execs.
//
// An answer with `code` is an error. An exit is reported again on each new
// events connection until its process is deleted.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::remote {

using Json = nlohmann::json;

/// The sandbox process finds the door under this number.
inline constexpr int kDoorFd = 3;

struct Message {
  Json body;
  std::vector<UniqueFd> fds;
};

/// Blocks: up to `limit`.
Status SendMessage(int socket, const Json& body, const std::vector<int>& fds,
                   std::chrono::milliseconds limit);
/// Errors: kUnavailable at the end of the stream, kDeadlineExceeded.
Result<Message> ReceiveMessage(int socket, std::chrono::milliseconds limit);

/// Both ends of a stream.
Result<std::pair<UniqueFd, UniqueFd>> MakePair();

/// A new connection through the door. Errors: kUnavailable: nobody is behind it.
Result<UniqueFd> PassThrough(int door);
/// The next connection at the other side; none: kUnavailable.
Result<UniqueFd> ReceiveConnection(int door);

Json ToJson(const Error& error);
/// The body, or the error that it tells.
Status CheckAnswer(const Json& body);

}  // namespace gantry::remote
