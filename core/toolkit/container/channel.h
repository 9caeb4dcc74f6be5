// SPDX-License-Identifier: Apache-2.0
//
// What the maker and its children say to each other, over a socket pair: short messages, an error,
// a descriptor. Both sides are this program; by the time that a container has any say over a child,
// the child only ever sends, and what it sends is bounded and checked.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

enum class Word : int32_t {
  /// Of the maker: goes on.
  kGo = 1,
  /// Of the first child: it is in a new user namespace, which has no ids yet.
  kMapIds,
  /// Of the first child: it has a new time namespace, which nobody is in yet.
  kSetClocks,
  /// Of the first child: the second is born; with its pid and pidfd.
  kBorn,
  /// With the terminal's master.
  kConsole,
  /// The container is made, and waits for `kGo`.
  kReady,
  /// With the listener of the system calls that the filter asks about.
  kListener,
  /// With an error, which is the sender's last word.
  kFailed,
};

struct Message {
  Word word = Word::kFailed;
  pid_t pid = 0;
  Error error;
  UniqueFd fd;
};

/// CLOEXEC, above 2. Ends of a pair of SOCK_SEQPACKET.
Result<std::pair<UniqueFd, UniqueFd>> MakeChannel();

/// Errors: kUnavailable: the other side is gone; the errno's. `fd`: borrowed; negative: none.
Status Send(int channel, Word word, int fd = -1, pid_t pid = 0);

/// Errors: as of `Send`. A text longer than 2 KiB is cut.
Status SendError(int channel, const Error& error);

/// Blocks: until the other side says something. Errors: kUnavailable: it is gone; kInternal: what
/// it said is no message; the error that it sent.
Result<Message> Receive(int channel);

/// The same, where only `word` is expected.
Result<Message> Await(int channel, Word word);

}  // namespace gantry::container
