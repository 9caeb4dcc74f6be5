// SPDX-License-Identifier: Apache-2.0
//
// A process of a container: its init, or an exec. `Process` is what a backend
// implements; `ProcessContext` is what the core lends it for that one process.
//
// A process need not be a process of this host. Where it is one, the backend
// says so once, with `ProcessContext::Bind`, and the core does its exit, its
// signals and its statistics. Where it is not (it lives in a sentry, a guest,
// a Wasm instance), the backend reports its end with `Exited` and implements
// the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/ids.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// As many bytes does the core keep for a backend of a sandbox or a container (`Save`), and of
/// each of its processes.
inline constexpr size_t kMaxSaved = size_t{64} << 10;
inline constexpr size_t kMaxSavedOfProcess = size_t{4} << 10;

/// How a process ended, as containerd reads it.
struct ExitStatus {
  /// The exit code, or 128 + the signal's number.
  uint32_t status = 0;
  /// Nanoseconds since the epoch.
  int64_t exited_at_ns = 0;
};

/// A terminal's size in characters.
struct ConsoleSize {
  uint16_t width = 0;
  uint16_t height = 0;
};

/// Who makes the signals of a terminal.
enum class ConsoleKind {
  /// The kernel: it is the controlling terminal of the process's session.
  kControlling,
  /// Nobody here: its other side was given to what is no process of this host, a sentry
  /// for example. `Process::ConsoleSignal` is called with them.
  kForeign,
};

enum class Stream { kStdin, kStdout, kStderr };

/// What one standard stream of a process is connected to.
struct StreamEnd {
  /// What the process may have as its own descriptor. None: there is no such
  /// stream, give it /dev/null.
  UniqueFd fd;
  /// The fifo that `fd` came from, for a backend that must open it privately
  /// (one that sets O_NONBLOCK, for example). Empty where `fd` is no fifo.
  std::string path;
};

/// How a stream says that it has ended.
enum class StreamFraming {
  /// By the end of its connection, or for stdin by that of the core's half of it (shutdown(2)).
  kNone,
  /// For connections that know no half-close and may lose what is under way when one side closes
  /// them, as those of a VM through hybrid vsock do. The bytes go in frames: four bytes with the
  /// length, the highest first, and so many bytes of the stream; the length 0 is its end. The
  /// core closes the connection of an output when it has read the end, and keeps that of stdin,
  /// of which it has sent the end, until the process has ended.
  kFrames,
};

/// The standard streams of a process. With `terminal` all ends are empty: `OpenConsole` makes the
/// terminal, or, where a runtime makes it, `AttachConsole` takes its master, or, where it is in a
/// guest, `AttachStream` takes what carries it.
struct Stdio {
  bool terminal = false;
  StreamEnd in;
  StreamEnd out;
  StreamEnd err;
};

/// Lent by the core to one process of a backend. It lives at least until that
/// `Process` has been destroyed.
/// Thread: any. Blocks: only where a method says so.
class ProcessContext {
 public:
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;
  virtual ~ProcessContext() = default;

  virtual const ContainerId& container() const = 0;
  /// Empty for the container's init.
  virtual const ExecId& exec() const = 0;

  /// The streams that the core has opened. To be called once, before the
  /// process starts. Owner: the caller, who closes his copies as soon as the
  /// process has its own, so that the reader sees the end.
  /// Blocks: until the other ends are open or the call's deadline passes.
  virtual Result<Stdio> TakeStdio() = 0;

  /// This process is that process of the host: from now on the core reports
  /// its exit, and sends it signals where `Kill` is left out.
  /// Again: refused with kFailedPrecondition for another process.
  virtual Status Bind(std::shared_ptr<HostProcess> process) = 0;
  /// For a process without a host process: the live host pid that stands for
  /// it in containerd's eyes (the sentry's, the VMM's).
  virtual void SetPid(HostPid pid) = 0;
  /// The process has ended. To be called by backends that did not `Bind`.
  /// Again: a second report is dropped and logged.
  virtual void Exited(ExitStatus status) = 0;

  /// The process's terminal: the core makes it, keeps its master as after `AttachConsole`, and
  /// gives the other side, which is nobody's controlling terminal yet. To be called after
  /// `TakeStdio`, before the process starts. Owner: the caller, who closes it as soon as the
  /// process has it.
  /// Again, also after a restart of the engine, until the process has started: the same terminal,
  /// so a start that is tried again loses nothing.
  /// Errors: kFailedPrecondition: the process has no terminal, or it has started.
  /// Blocks: for one way to the keeper. Thread: workers.
  virtual Result<UniqueFd> OpenConsole(ConsoleKind kind) = 0;
  /// The master side of a terminal that somebody else has made; before its process is spawned, so
  /// that an engine that dies in between loses nothing. The core copies between it and the stdio
  /// that containerd gave, resizes it, keeps it and its kind over a restart of the engine.
  virtual Status AttachConsole(UniqueFd master, ConsoleKind kind = ConsoleKind::kControlling) = 0;
  /// A byte stream that carries one of the standard streams (a vsock
  /// connection, a socket): copied by the core until its end, with back
  /// pressure, over a restart of the engine too, with no byte lost or doubled.
  /// A connection that ends without the end that `framing` asks for is logged, and counts as the
  /// end. Of a process whose terminal is elsewhere, with a kernel of its own, kStdin and kStdout
  /// with `kFrames` are the two ways of it, mostly two descriptors of one connection: input ends
  /// with output, and `Process::Resize` is the backend's.
  /// Errors: kInvalidArgument: `fd` is no stream socket, which frames come on;
  /// kFailedPrecondition: the process has a terminal and `fd` is none of its two ways, or that
  /// stream, or a console, is attached already.
  virtual Status AttachStream(Stream stream, UniqueFd fd,
                              StreamFraming framing = StreamFraming::kNone) = 0;

  /// Keeps what the backend must know of this process over the end of an engine, in place of
  /// what was kept before: it comes back as `ExecRequest::saved` in `RecoverExec`, an init's as
  /// `ContainerRequest::init_saved` in `RecoverContainer`. On disk, in the container's record,
  /// when this returns. What an exec has is dropped with its end, for it is not recovered then,
  /// and when `RecoverExec` answers kAborted.
  /// Errors, and what was kept before stays: kInvalidArgument above `kMaxSavedOfProcess`;
  /// kResourceExhausted where the record has no room left; kNotFound when the process is gone;
  /// those of the disk. Blocks: for a write. Thread: workers.
  virtual Status Save(std::string blob) = 0;

 protected:
  ProcessContext() = default;
};

/// One process of a container, implemented by a backend.
/// Thread: workers, one call at a time per process; `Kill`, `Resize`, `ConsoleSignal`
/// and `CloseStdin` at any time. Calls on different processes of a container run
/// side by side.
/// Each call should end within the deadline that the core sets for it
/// (`timeouts` in the configuration); a call that does not is reported as
/// DEADLINE_EXCEEDED and goes on without holding up other containers.
class Process {
 public:
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  /// Runs the process; it is running when this returns, or has ended already.
  /// Again: after a restart of the engine it may be called for a process that
  /// an earlier call has started; that is success.
  /// Errors: a program that cannot be run is the workload's failure, its text
  /// is shown to the user as it is.
  virtual Status Start() = 0;

  /// Sends a signal. Left out: the core signals the bound host process.
  /// Errors: kNotFound when the process has ended.
  virtual Status Kill([[maybe_unused]] uint32_t signal) {
    return Fail(Code::kUnimplemented, "kill: not implemented by this backend");
  }

  /// Left out: the core sets the size of the attached console.
  virtual Status Resize([[maybe_unused]] ConsoleSize size) {
    return Fail(Code::kUnimplemented, "resize: not implemented by this backend");
  }

  /// Of a process whose console is `kForeign`, running or in its `Start`: sends a signal to
  /// the foreground process group of the terminal. SIGINT, SIGQUIT or SIGTSTP when the user
  /// has typed the character for it: the one that the terminal's settings name, with ISIG, and
  /// not behind VLNEXT. SIGWINCH each time when the core has set the size, even to what it was.
  /// The character itself and what was typed before it have been written to the terminal by
  /// then, which has thrown away for it what its settings say; what is typed after it does not
  /// wait for this call.
  /// Again: one call at a time, in the order in which they were typed; what comes while 16
  /// wait is dropped where an equal one waits. The end of an engine may lose one that was
  /// typed just before.
  /// Errors: kNotFound when the process has ended; others are logged. Left out: nothing
  /// happens.
  virtual Status ConsoleSignal([[maybe_unused]] uint32_t signal) {
    return Fail(Code::kUnimplemented, "console signal: not implemented by this backend");
  }

  /// The client will send no more input. Left out: the core closes its ends.
  virtual Status CloseStdin() {
    return Fail(Code::kUnimplemented, "close stdin: not implemented by this backend");
  }

  /// Frees what the backend holds for the process; it has ended, or never
  /// started. Must succeed where nothing is left. Again: allowed. The end of a
  /// process that this kills is said (`ProcessContext::Exited`, or its bound host
  /// process has ended) before it returns.
  virtual Status Delete() = 0;

 protected:
  Process() = default;
};

}  // namespace gantry
