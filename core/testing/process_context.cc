// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/testing/process_context.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/terminal.h>

#include "core/testing/limits.h"

namespace gantry {

FakeProcessContext::FakeProcessContext(const std::string& container, const std::string& exec)
    : container_(ContainerId::Parse(container).value()),
      exec_(exec.empty() ? ExecId() : ExecId::Parse(exec).value()) {}

FakeProcessContext::FakeProcessContext(const std::string& container, EventLog& events)
    : container_(ContainerId::Parse(container).value()), events_(&events) {}

void FakeProcessContext::Tell(const std::string& word) {
  if (events_ != nullptr) {
    events_->Add(word);
  }
}

Result<Stdio> FakeProcessContext::TakeStdio() { return std::move(stdio); }

Status FakeProcessContext::Bind(std::shared_ptr<HostProcess> process) {
  if (refuse_bind) {
    return Fail(Code::kInternal, "bind: refused by the test");
  }
  if (bound && bound->pid() != process->pid()) {
    return Fail(Code::kFailedPrecondition, "bind process {}: process {} is bound",
                process->pid().value, bound->pid().value);
  }
  bound = std::move(process);
  Tell("bound");
  return {};
}

void FakeProcessContext::SetPid(HostPid stands_for_it) { pid = stands_for_it; }

void FakeProcessContext::Exited(ExitStatus status) {
  if (!exited) {
    exited = status;
  }
  Tell(Format("exited {}", status.status));
}

Result<UniqueFd> FakeProcessContext::OpenConsole(ConsoleKind kind) {
  if (!stdio.terminal) {
    return Fail(Code::kFailedPrecondition, "open a console: the process has no terminal");
  }
  console_kind = kind;
  if (!console) {
    GANTRY_TRY(Terminal made, Terminal::Open());
    console = std::move(made.master);
    return std::move(made.replica);
  }
  UniqueFd replica(ioctl(console.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!replica) {
    return FailErrno(errno, "open a console again");
  }
  return replica;
}

Status FakeProcessContext::AttachConsole(UniqueFd master, ConsoleKind kind) {
  console = std::move(master);
  console_kind = kind;
  return {};
}

Status FakeProcessContext::AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) {
  attached[stream] = std::move(fd);
  framings[stream] = framing;
  return {};
}

Status FakeProcessContext::Save(std::string text) {
  return fakes::KeepBlob(std::move(text), blob, kMaxSavedOfProcess);
}

Result<ClientStreams> FakeProcessContext::OpenStreams() {
  ClientStreams client;
  GANTRY_TRY(auto in, MakeBlockingPipe());
  GANTRY_TRY(auto out, MakeBlockingPipe());
  GANTRY_TRY(auto err, MakeBlockingPipe());
  stdio.in.fd = std::move(in.first);
  client.in = std::move(in.second);
  client.out = std::move(out.first);
  stdio.out.fd = std::move(out.second);
  client.err = std::move(err.first);
  stdio.err.fd = std::move(err.second);
  return client;
}

void FakeProcessContext::RestartEngine() {
  bound = nullptr;
  pid = {};
  exited.reset();
}

std::string ReadStream(const UniqueFd& fd, const std::string& wanted,
                       std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string text;
  std::array<char, 4096> buffer{};
  pollfd one = {fd.get(), POLLIN, 0};
  while ((wanted.empty() || !text.contains(wanted)) && poll(&one, 1, PollTimeout(deadline)) > 0) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

}  // namespace gantry
