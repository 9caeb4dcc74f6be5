// SPDX-License-Identifier: Apache-2.0
//
// Opens what containerd names for a process's streams. All fifos are found before any is opened,
// and the keeper opens the process's ends before this engine opens anything: from then on its
// death ends nobody's stream. What fails gives back what the keeper has been given.
#include "core/io/open_stdio.h"

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/io/fifo.h"
#include "core/os/fifo.h"
#include "core/os/fs.h"
#include "core/os/splice.h"

namespace gantry::io {

namespace {

constexpr mode_t kLogFileMode = 0644;
constexpr mode_t kLogDirMode = 0755;

/// The client's fifos, found but not opened.
Result<std::vector<NamedFifo>> FindFifos(const StdioUri& uri, const FifoOptions& options) {
  std::vector<NamedFifo> found;
  for (const Stream stream : kStreams) {
    if (const std::string& path = PathOf(uri, stream); !path.empty()) {
      GANTRY_TRY(NamedFifo fifo, FindFifo(stream, path, options));
      found.push_back(std::move(fifo));
    }
  }
  return found;
}

/// The keeper holds the process's ends: from here on an engine that is killed
/// ends no stream.
Status HoldProcessEnds(StdioHost& host, const std::vector<NamedFifo>& fifos) {
  std::vector<HeldFifo> held;
  for (const NamedFifo& fifo : fifos) {
    GANTRY_TRY(UniqueFd name, fifo.name.Duplicate());
    held.push_back({kProcessNames[IndexOf(fifo.stream)], std::move(name),
                    fifo.stream == Stream::kStdin ? os::PipeEnd::kRead : os::PipeEnd::kWrite});
  }
  return held.empty() ? Status() : host.Hold(std::move(held));
}

Status OpenFifos(OpenedStdio& opened, Relay& relay, StdioHost& host, const StdioUri& uri,
                 const StdioOptions& options) {
  const FifoOptions fifo_options{options.pipe_bytes, options.uid, options.gid, options.given_up};
  const Deadline deadline = std::chrono::steady_clock::now() + options.open_limit;
  GANTRY_TRY(const std::vector<NamedFifo> fifos, FindFifos(uri, fifo_options));
  for (const NamedFifo& fifo : fifos) {
    opened.held.emplace_back(kProcessNames[IndexOf(fifo.stream)]);
  }
  GANTRY_CHECK_OK(HoldProcessEnds(host, fifos));
  for (const NamedFifo& fifo : fifos) {
    GANTRY_TRY(FifoEnds ends, fifo.stream == Stream::kStdin
                                  ? OpenInputFifo(fifo, fifo_options)
                                  : OpenOutputFifo(relay, fifo, fifo_options, deadline));
    opened.process[IndexOf(fifo.stream)] = std::move(ends.process);
    opened.hold[IndexOf(fifo.stream)] = std::move(ends.hold);
  }
  return {};
}

/// What the process has where a client streams: the other ends are for who stands between them
/// and the client's connections (stream_pump.h).
Status MakePipes(OpenedStdio& opened, const StdioUri& uri, const StdioOptions& options) {
  for (const Stream stream : kStreams) {
    if (PathOf(uri, stream).empty()) {
      continue;
    }
    GANTRY_TRY(auto pipe, MakePipe());
    IgnoreError(os::SetPipeSize(pipe.first.get(), options.pipe_bytes), "only slower");
    if (options.uid || options.gid) {
      GANTRY_CHECK_OK(os::ChangeOwner(pipe.first.get(), options.uid, options.gid));
    }
    const bool input = stream == Stream::kStdin;
    opened.process[IndexOf(stream)] = std::move(input ? pipe.first : pipe.second);
    opened.hold[IndexOf(stream)] = std::move(input ? pipe.second : pipe.first);
  }
  return {};
}

Status StartLogger(OpenedStdio& opened, StdioHost& host, const StdioUri& uri,
                   const StdioOptions& options) {
  BinaryLoggerSpec spec;
  spec.uri = uri;
  spec.id = options.id;
  spec.ns = options.ns;
  spec.tag = options.logger_tag;
  spec.pipe_bytes = options.pipe_bytes;
  spec.ready_limit = options.open_limit;
  GANTRY_TRY(BinaryLogger::Started started, BinaryLogger::Start(host, spec));
  opened.logger = std::move(started.logger);
  if (options.uid || options.gid) {
    GANTRY_CHECK_OK(os::ChangeOwner(started.out.get(), options.uid, options.gid));
    GANTRY_CHECK_OK(os::ChangeOwner(started.err.get(), options.uid, options.gid));
  }
  opened.process[IndexOf(Stream::kStdout)] = std::move(started.out);
  opened.process[IndexOf(Stream::kStderr)] = std::move(started.err);
  return {};
}

}  // namespace

const std::string& PathOf(const StdioUri& uri, Stream stream) {
  return stream == Stream::kStdin ? uri.in : stream == Stream::kStdout ? uri.out : uri.err;
}

Result<UniqueFd> OpenLogFile(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    GANTRY_CHECK_OK(os::MakeDirs(path.substr(0, slash), kLogDirMode));
  }
  return os::OpenLogFile(path, kLogFileMode);
}

Result<OpenedStdio> OpenStdio(Relay& relay, StdioHost& host, const StdioUri& uri,
                              const StdioOptions& options) {
  OpenedStdio opened;
  switch (uri.kind) {
    case StdioKind::kNone:
      break;
    case StdioKind::kFifo:
      if (auto status = OpenFifos(opened, relay, host, uri, options); !status) {
        host.Drop(std::move(opened.held));
        return std::unexpected(std::move(status).error());
      }
      break;
    case StdioKind::kFile:
      // Only to learn now that it can be written; the relay opens its own.
      GANTRY_CHECK_OK(OpenLogFile(uri.path));
      break;
    case StdioKind::kBinary:
    case StdioKind::kBinaryV2:
      if (auto status = StartLogger(opened, host, uri, options); !status) {
        if (opened.logger) {
          opened.logger->Stop({}, {});
        }
        return std::unexpected(std::move(status).error());
      }
      break;
    case StdioKind::kStreaming:
      GANTRY_CHECK_OK(MakePipes(opened, uri, options));
      break;
  }
  return opened;
}

}  // namespace gantry::io
