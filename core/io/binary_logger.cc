// SPDX-License-Identifier: Apache-2.0
//
// Starting a log program as containerd's shim does: descriptors 3 and 4 are the read ends of
// stdout and stderr, 5 is closed when it is ready. It is asked to end only by the end of its
// input; if that does not help in time by SIGTERM, then by SIGKILL, since it may still have lines
// to write.
#include "core/io/binary_logger.h"

#include <signal.h>
#include <sys/epoll.h>

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fifo.h"
#include "core/os/poll.h"
#include "core/os/splice.h"

namespace gantry::io {

namespace {

/// The numbers that containerd's log programs know.
constexpr int kOutNumber = 3;
constexpr int kErrNumber = 4;
constexpr int kReadyNumber = 5;

/// How long a killed program may take to be reaped.
constexpr auto kReapLimit = std::chrono::seconds(2);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> MakeBlockingPipe(size_t bytes) {
  GANTRY_TRY(auto ends, MakePipe());
  Pipe pipe{std::move(ends.first), std::move(ends.second)};
  GANTRY_CHECK_OK(SetNonblocking(pipe.read_end.get(), false));
  GANTRY_CHECK_OK(SetNonblocking(pipe.write_end.get(), false));
  if (bytes > 0) {
    IgnoreError(os::SetPipeSize(pipe.write_end.get(), bytes), "a narrow pipe is only slower");
  }
  return pipe;
}

SpawnRequest MakeRequest(const BinaryLoggerSpec& spec) {
  SpawnRequest request;
  request.argv.push_back(spec.uri.path);
  for (const auto& [key, value] : spec.uri.query) {
    request.argv.push_back(key);
    request.argv.push_back(value);
  }
  request.env = {"CONTAINER_ID=" + spec.id, "CONTAINER_NAMESPACE=" + spec.ns};
  request.tag = spec.tag;
  return request;
}

Status WaitReady(const UniqueFd& ready, const BinaryLoggerSpec& spec) {
  GANTRY_TRY(const uint32_t state, os::Poll(ready.get(), EPOLLIN, spec.ready_limit));
  if (state == 0) {
    return Fail(Code::kDeadlineExceeded, "start logger '{}': not ready within {}", spec.uri.path,
                spec.ready_limit);
  }
  char byte = 0;
  GANTRY_TRY(const Transfer got, os::ReadSome(ready.get(), std::span(&byte, 1)));
  if (got.bytes == 0 && spec.uri.kind == StdioKind::kBinaryV2) {
    return Fail(Code::kUnavailable, "start logger '{}': ended before it was ready", spec.uri.path);
  }
  return {};
}

}  // namespace

Result<BinaryLogger::Started> BinaryLogger::Start(StdioHost& host, const BinaryLoggerSpec& spec) {
  GANTRY_TRY(Pipe out, MakeBlockingPipe(spec.pipe_bytes));
  GANTRY_TRY(Pipe err, MakeBlockingPipe(spec.pipe_bytes));
  GANTRY_TRY(Pipe ready, MakeBlockingPipe(0));
  SpawnRequest request = MakeRequest(spec);
  request.fds.emplace_back(std::move(out.read_end), kOutNumber);
  request.fds.emplace_back(std::move(err.read_end), kErrNumber);
  request.fds.emplace_back(std::move(ready.write_end), kReadyNumber);
  auto process = host.Spawn(std::move(request));
  if (!process) {
    return std::unexpected(
        std::move(process).error().Within(Format("start logger '{}'", spec.uri.path)));
  }
  Started started;
  started.logger = std::make_unique<BinaryLogger>(std::move(*process));
  started.out = std::move(out.write_end);
  started.err = std::move(err.write_end);
  if (auto status = WaitReady(ready.read_end, spec); !status) {
    started.logger->Stop({}, {});
    return std::unexpected(std::move(status).error());
  }
  return started;
}

std::unique_ptr<BinaryLogger> BinaryLogger::Recover(StdioHost& host, const std::string& tag) {
  return std::make_unique<BinaryLogger>(host.FindSpawned(tag));
}

void BinaryLogger::Stop(std::chrono::milliseconds grace, std::chrono::milliseconds stop_limit) {
  const auto process = std::exchange(process_, nullptr);
  if (!process) {
    return;
  }
  const auto wait = [&](std::chrono::milliseconds limit) {
    return process->Ended().has_value() || (limit.count() > 0 && process->Wait(limit).has_value());
  };
  if (wait(grace)) {
    return;
  }
  IgnoreError(process->Signal(SIGTERM), "it may have ended just now");
  if (wait(stop_limit)) {
    return;
  }
  IgnoreError(process->Signal(SIGKILL), "it may have ended just now");
  IgnoreError(process->Wait(kReapLimit), "the keeper reaps it when it can");
}

}  // namespace gantry::io
