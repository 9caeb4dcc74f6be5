// SPDX-License-Identifier: Apache-2.0
#include "core/io/open_stdio.h"

#include "core/io/fifo.h"
#include "core/os/fs.h"

namespace gantry::io {

namespace {

constexpr mode_t kLogFileMode = 0644;
constexpr mode_t kLogDirMode = 0755;

Status OpenFifos(OpenedStdio& opened, const StdioUri& uri, const StdioOptions& options) {
  const FifoOptions fifo{options.pipe_bytes, options.uid, options.gid};
  const Deadline deadline = std::chrono::steady_clock::now() + options.open_limit;
  const auto put = [&](Stream stream, FifoEnds ends) {
    opened.process[IndexOf(stream)] = std::move(ends.process);
    opened.keeper[IndexOf(stream)] = std::move(ends.keeper);
  };
  if (!uri.in.empty()) {
    GANTRY_TRY(FifoEnds ends, OpenInputFifo(uri.in, fifo));
    put(Stream::kStdin, std::move(ends));
  }
  if (!uri.out.empty()) {
    GANTRY_TRY(FifoEnds ends, OpenOutputFifo("stdout", uri.out, fifo, deadline));
    put(Stream::kStdout, std::move(ends));
  }
  if (!uri.err.empty()) {
    GANTRY_TRY(FifoEnds ends, OpenOutputFifo("stderr", uri.err, fifo, deadline));
    put(Stream::kStderr, std::move(ends));
  }
  return {};
}

Status OpenFile(OpenedStdio& opened, const StdioUri& uri, bool terminal) {
  GANTRY_TRY(UniqueFd file, OpenLogFile(uri.path, true));
  if (terminal) {
    // Only to learn now that it can be written; the relay opens its own.
    return {};
  }
  GANTRY_TRY(opened.process[IndexOf(Stream::kStderr)], file.Duplicate());
  opened.process[IndexOf(Stream::kStdout)] = std::move(file);
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

Result<UniqueFd> OpenLogFile(const std::string& path, bool append) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    GANTRY_CHECK_OK(os::MakeDirs(path.substr(0, slash), kLogDirMode));
  }
  return os::OpenLogFile(path, append, kLogFileMode);
}

Result<OpenedStdio> OpenStdio(StdioHost& host, const StdioUri& uri, const StdioOptions& options,
                              bool terminal) {
  OpenedStdio opened;
  switch (uri.kind) {
    case StdioKind::kNone:
      break;
    case StdioKind::kFifo:
      GANTRY_CHECK_OK(OpenFifos(opened, uri, options));
      break;
    case StdioKind::kFile:
      GANTRY_CHECK_OK(OpenFile(opened, uri, terminal));
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
      return Fail(Code::kInvalidArgument,
                  "open stdio: streams over the sandbox API are not opened as files");
  }
  return opened;
}

}  // namespace gantry::io
