// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/terminal.h>
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

std::string MasterName(const std::string& name) { return name + "/m"; }

std::string EndName(const std::string& name, size_t number) {
  return Format("{}/{}", name, number);
}

/// The one that an engine before this one made, or a new one, both sides stored.
Result<Terminal> StoredTerminal(SandboxContext& sandbox, const std::string& name) {
  auto replica = sandbox.Take(name);
  auto master = sandbox.Take(MasterName(name));
  if (replica && master) {
    return Terminal{std::move(*master), std::move(*replica)};
  }
  GANTRY_TRY(Terminal made, Terminal::Open());
  const std::string master_name = MasterName(name);
  const std::array<NamedFd, 2> both = {NamedFd{master_name, made.master},
                                       NamedFd{name, made.replica}};
  GANTRY_CHECK_OK(sandbox.StoreAll(both));
  return made;
}

}  // namespace

Result<Streams> TakeStreams(ProcessContext& process, ConsoleKind kind) {
  GANTRY_TRY(Stdio stdio, process.TakeStdio());
  if (!stdio.terminal) {
    return FromEnds(std::move(stdio));
  }
  GANTRY_TRY(Terminal terminal, Terminal::Open());
  GANTRY_TRY(Streams streams, FromTerminal(terminal.replica));
  GANTRY_CHECK_OK(process.AttachConsole(std::move(terminal.master), kind));
  return streams;
}

Result<Streams> TakeStreamsDurably(SandboxContext& sandbox, ProcessContext& process,
                                   const std::string& name) {
  GANTRY_TRY(Stdio stdio, process.TakeStdio());
  if (!stdio.terminal) {
    return FromEnds(std::move(stdio));
  }
  GANTRY_TRY(Terminal terminal, StoredTerminal(sandbox, name));
  GANTRY_TRY(Streams streams, FromTerminal(terminal.replica));
  const Status attached = process.AttachConsole(std::move(terminal.master), ConsoleKind::kForeign);
  // It may have been attached by the engine before.
  if (!attached && attached.error().code != Code::kFailedPrecondition) {
    return std::unexpected(attached.error());
  }
  return streams;
}

Result<Streams> KeepStreams(SandboxContext& sandbox, ProcessContext& process,
                            const std::string& name) {
  GANTRY_TRY(Streams streams, TakeStreamsDurably(sandbox, process, name));
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

Result<Streams> KeptStreams(SandboxContext& sandbox, const std::string& name, bool terminal) {
  if (terminal) {
    GANTRY_TRY(const UniqueFd replica, sandbox.Take(name));
    return FromTerminal(replica);
  }
  Streams streams;
  for (size_t i = 0; i < streams.ends.size(); ++i) {
    GANTRY_TRY(streams.ends[i], sandbox.Take(EndName(name, i)));
  }
  return streams;
}

void ForgetKept(SandboxContext& sandbox, const std::string& name, bool terminal) {
  if (terminal) {
    ForgetStreams(sandbox, name);
    return;
  }
  for (size_t i = 0; i < Streams().ends.size(); ++i) {
    sandbox.Drop(EndName(name, i));
  }
}

void ForgetStreams(SandboxContext& sandbox, const std::string& name) {
  sandbox.Drop(name);
  sandbox.Drop(MasterName(name));
}

}  // namespace gantry
