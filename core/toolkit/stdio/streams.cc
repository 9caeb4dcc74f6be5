// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/stdio/streams.h>

namespace gantry {
namespace {

Result<UniqueFd> PrivateEnd(StreamEnd end) {
  if (!end.fd) {
    UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) {
      return FailErrno(errno, "open '/dev/null'");
    }
    return null;
  }
  if (end.path.empty()) {
    return std::move(end.fd);
  }
  const int mode = fcntl(end.fd.get(), F_GETFL) & O_ACCMODE;
  const std::string path = Format("/proc/self/fd/{}", end.fd.get());
  UniqueFd own(open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC));
  if (!own) {
    // Without a reader there is none to be had for writing; then nobody else minds the flag.
    return std::move(end.fd);
  }
  // What whoever gets it finds set is what its program sees.
  if (fcntl(own.get(), F_SETFL, mode) != 0) {
    return FailErrno(errno, "open '{}'", end.path);
  }
  return own;
}

Result<Streams> FromTerminal(const UniqueFd& replica) {
  Streams streams;
  streams.terminal = true;
  for (UniqueFd& end : streams.ends) {
    GANTRY_TRY(end, replica.Duplicate());
  }
  return streams;
}

Result<Streams> FromEnds(Stdio stdio) {
  Streams streams;
  GANTRY_TRY(streams.ends[0], PrivateEnd(std::move(stdio.in)));
  GANTRY_TRY(streams.ends[1], PrivateEnd(std::move(stdio.out)));
  GANTRY_TRY(streams.ends[2], PrivateEnd(std::move(stdio.err)));
  return streams;
}

std::string EndName(const std::string& name, size_t number) {
  return Format("{}/{}", name, number);
}

}  // namespace

Result<Streams> TakeStreams(ProcessContext& process, ConsoleKind kind) {
  GANTRY_TRY(Stdio stdio, process.TakeStdio());
  if (!stdio.terminal) {
    return FromEnds(std::move(stdio));
  }
  GANTRY_TRY(const UniqueFd replica, process.OpenConsole(kind));
  return FromTerminal(replica);
}

Result<Streams> KeepStreams(SandboxContext& sandbox, ProcessContext& process,
                            const std::string& name) {
  GANTRY_TRY(Streams streams, TakeStreams(process, ConsoleKind::kForeign));
  if (streams.terminal) {
    return streams;
  }
  const std::array<std::string, 3> names = {EndName(name, 0), EndName(name, 1), EndName(name, 2)};
  const std::array<NamedFd, 3> all = {NamedFd{names[0], streams.ends[0]},
                                      NamedFd{names[1], streams.ends[1]},
                                      NamedFd{names[2], streams.ends[2]}};
  GANTRY_CHECK_OK(sandbox.StoreAll(all));
  return streams;
}

Result<Streams> KeptStreams(SandboxContext& sandbox, ProcessContext& process,
                            const std::string& name, bool terminal) {
  if (terminal) {
    GANTRY_TRY(const UniqueFd replica, process.OpenConsole(ConsoleKind::kForeign));
    return FromTerminal(replica);
  }
  Streams streams;
  for (size_t i = 0; i < streams.ends.size(); ++i) {
    GANTRY_TRY(streams.ends[i], sandbox.Take(EndName(name, i)));
  }
  return streams;
}

void ForgetKept(SandboxContext& sandbox, const std::string& name, bool terminal) {
  for (size_t i = 0; !terminal && i < Streams().ends.size(); ++i) {
    sandbox.Drop(EndName(name, i));
  }
}

}  // namespace gantry
