// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to one process of a container, for a test: it gives the streams that the
// test has made, and remembers what it is told.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gantry/process.h>
#include <gantry/testing/event_log.h>

namespace gantry {

/// The client's ends of a process's streams; the test's.
struct ClientStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// Thread: the calls, any, one at a time; the members, while no call is under way.
class FakeProcessContext : public ProcessContext {
 public:
  /// Ids as containerd gives them; the test ends with an exception where they are none. `exec`:
  /// empty for a container's init.
  explicit FakeProcessContext(const std::string& container, const std::string& exec = "");
  /// What it is told goes into `events`, too, which outlives it.
  FakeProcessContext(const std::string& container, EventLog& events);

  const ContainerId& container() const override { return container_; }

  const ExecId& exec() const override { return exec_; }

  /// `stdio`, whose descriptors it gives away.
  Result<Stdio> TakeStdio() override;
  /// Errors: kFailedPrecondition where another process is bound; kInternal with `refuse_bind`.
  Status Bind(std::shared_ptr<HostProcess> process) override;
  void SetPid(HostPid pid) override;
  /// The first report counts, as with the core.
  void Exited(ExitStatus status) override;
  /// A terminal, whose master is `console`. Again: the same one. Errors: kFailedPrecondition
  /// without `stdio.terminal`.
  Result<UniqueFd> OpenConsole(ConsoleKind kind) override;
  Status AttachConsole(UniqueFd master, ConsoleKind kind) override;
  Status AttachStream(Stream stream, UniqueFd fd,
                      StreamFraming framing = StreamFraming::kNone) override;
  /// Errors: kInvalidArgument above `kMaxSavedOfProcess`.
  Status Save(std::string text) override;

  /// Connects the process's three streams to pipes. Owner: the caller. Errors: of pipe(2).
  Result<ClientStreams> OpenStreams();
  /// As a restart of the engine does: nothing is bound or has ended any more, until the backend
  /// says so again. A terminal and attached streams stay.
  void RestartEngine();

  /// To be set by the test: what `TakeStdio` gives, and whether `Bind` fails.
  Stdio stdio;
  bool refuse_bind = false;

  /// What the backend has said.
  std::shared_ptr<HostProcess> bound;
  HostPid pid;
  std::optional<ExitStatus> exited;
  UniqueFd console;
  ConsoleKind console_kind = ConsoleKind::kControlling;
  std::map<Stream, UniqueFd> attached;
  std::map<Stream, StreamFraming> framings;
  std::string blob;

 private:
  void Tell(const std::string& word);

  ContainerId container_;
  ExecId exec_;
  EventLog* events_ = nullptr;
};

/// Reads to the end of the stream, or until `wanted` has come where it is not empty, or until
/// `limit` has passed; gives what has come. Blocks: so long. Thread: any.
std::string ReadStream(const UniqueFd& fd, const std::string& wanted = "",
                       std::chrono::milliseconds limit = std::chrono::seconds(10));

}  // namespace gantry
