// SPDX-License-Identifier: Apache-2.0
//
// The envelopes of link messages as they come out of a socket.
#include <sys/socket.h>
#include <unistd.h>

#include "core/link/channel.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

/// What a socket takes without a reader.
constexpr size_t kMaxBytes = 32 << 10;

/// Reads whole messages until there are no more, or the stream is of no use.
void ReadAll(link::Assembler& assembler, int socket) {
  while (true) {
    const Result<bool> more = assembler.ReadFrom(socket);
    while (true) {
      const auto message = assembler.Next();
      if (!message) {
        return;
      }
      if (!*message) {
        break;
      }
      Require((*message)->body.size() <= link::kMaxBody && (*message)->fds.size() <= link::kMaxFds,
              "a message is within the limits");
    }
    if (!more || !*more) {
      return;
    }
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  input = input.substr(0, kMaxBytes);
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "there is a pair of sockets");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  link::Assembler assembler;
  // In two parts, so that messages are cut in the middle.
  const size_t first = input.size() / 2;
  for (const std::string_view part : {input.substr(0, first), input.substr(first)}) {
    Require(part.empty() ||
                write(writer.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()),
            "the socket takes the input");
    ReadAll(assembler, reader.get());
  }
  writer.reset();
  ReadAll(assembler, reader.get());
}

}  // namespace gantry::fuzz
