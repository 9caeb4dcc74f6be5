// SPDX-License-Identifier: Apache-2.0
//
// It stays as the parent of the container's process, hands signals on and ends as it ends; or, with
// --sibling, it ends when the program runs.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/container/join.h>
#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/container/sealed_program.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/init/gated_program.h>
#include <gantry/toolkit/oci/json.h>

#include "core/toolkit/init/arguments.h"

namespace gantry::init {
namespace {

// A program that could not make its container, as shells have it for what they cannot execute.
constexpr int kFailed = 126;
constexpr size_t kMaxConfigBytes = size_t{16} << 20;

Result<std::string> ReadText(int fd, std::string_view what) {
  std::string text;
  char part[64 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, part, sizeof(part));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return FailErrno(errno, "read {} from descriptor {}", what, fd);
    }
    if (got == 0) {
      return text;
    }
    text.append(part, static_cast<size_t>(got));
    if (text.size() > kMaxConfigBytes) {
      return Fail(Code::kInvalidArgument, "read {} from descriptor {}: above {} bytes", what, fd,
                  kMaxConfigBytes);
    }
  }
}

// A line of JSON; to standard error where there is no other place.
void Answer(int fd, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(fd < 0 ? STDERR_FILENO : fd, text.data(), text.size()) < 0) {
    ::_exit(kFailed);  // Who started this is gone.
  }
}

std::string TextOf(const Error& error) {
  return Format(R"({{"error":{{"code":{},"errno":{},"message":{}}}}})",
                oci::Quote(CodeName(error.code)), error.sys_errno, oci::Quote(error.message));
}

std::string TextOf(const container::MadeProcess& made) {
  std::string warnings;
  for (const std::string& warning : made.warnings()) {
    warnings += (warnings.empty() ? "" : ",") + oci::Quote(warning);
  }
  return Format(R"({{"made":{{"pid":{},"warnings":[{}]}}}})", made.pid(), warnings);
}

Status SendDescriptor(int socket, int fd, std::string_view what) {
  auto sent = SendWithFds(socket, std::string_view("\0", 1), std::span(&fd, 1));
  if (!sent) {
    return std::unexpected(std::move(sent).error().Within(Format("hand over {}", what)));
  }
  return sent->bytes == 1
             ? Status()
             : Fail(Code::kUnavailable, "hand over {}: the socket takes nothing", what);
}

Status AwaitGate(int gate) {
  char byte = 0;
  ssize_t got = 0;
  while (gate >= 0 && (got = ::read(gate, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (gate >= 0 && got <= 0) {
    return got < 0 ? FailErrno(errno, "wait at the gate")
                   : Fail(Code::kCanceled, "wait at the gate: it was closed");
  }
  return {};
}

Status CheckConsole(const Arguments& arguments, bool terminal) {
  return terminal && arguments.console < 0
             ? Status(Fail(Code::kInvalidArgument,
                           "make a process: it has a terminal, and there is no --console"))
             : Status();
}

// What a container that is made and one that is joined are told alike.
template <class Request>
Result<Request> ReadRequest(const Arguments& arguments, container::BuiltInProgram* program) {
  Request request;
  GANTRY_TRY(std::string text, ReadText(arguments.config, "config.json"));
  GANTRY_TRY(request.spec, oci::ParseSpec(std::move(text), arguments.bundle + "/config.json"));
  request.bundle = arguments.bundle;
  request.id = arguments.id;
  request.streams = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  request.passed_on = arguments.passed_on;
  request.sibling = arguments.sibling;
  request.takes_listener = arguments.listener >= 0;
  request.program = program;
  return request;
}

Result<container::MadeProcess> MakeContainer(const Arguments& arguments,
                                             container::BuiltInProgram* program) {
  GANTRY_TRY(auto request, ReadRequest<container::MakeRequest>(arguments, program));
  GANTRY_CHECK_OK(CheckConsole(arguments, request.spec.process.terminal));
  return container::Make(std::move(request));
}

Result<container::MadeProcess> JoinContainer(const Arguments& arguments,
                                             container::BuiltInProgram* program) {
  GANTRY_TRY(auto request, ReadRequest<container::JoinRequest>(arguments, program));
  GANTRY_TRY(std::string text, ReadText(arguments.process, "the process"));
  GANTRY_TRY(request.process, oci::ParseProcess(std::move(text)));
  request.init = arguments.init;
  GANTRY_CHECK_OK(CheckConsole(arguments, request.process.terminal));
  return container::Join(std::move(request));
}

Status StartContainer(const Arguments& arguments, container::MadeProcess& made) {
  if (const UniqueFd console = made.TakeConsole()) {
    GANTRY_CHECK_OK(SendDescriptor(arguments.console, console.get(), "the terminal"));
  }
  GANTRY_CHECK_OK(AwaitGate(arguments.gate));
  UniqueFd listener;
  GANTRY_CHECK_OK(made.Start(arguments.listener >= 0 ? &listener : nullptr));
  if (listener) {
    Status sent = SendDescriptor(arguments.listener, listener.get(), "the seccomp listener");
    if (!sent) {
      ::syscall(SYS_pidfd_send_signal, made.pidfd().get(), SIGKILL, nullptr, 0);
    }
    return sent;
  }
  return {};
}

// As its parent: what it is sent goes to the container's process, and its end is this one's.
int StayParent(const container::MadeProcess& made) {
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(made.pid(), &status, WNOHANG);
    if (ended != 0) {
      return ended < 0 ? kFailed
                       : (WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    siginfo_t about{};
    const int signal = ::sigwaitinfo(&all, &about);
    if (signal > 0 && signal != SIGCHLD) {
      ::syscall(SYS_pidfd_send_signal, made.pidfd().get(), signal, nullptr, 0);
    }
  }
}

int Run(const std::vector<std::string>& words, const GatedProgram& of) {
  const auto arguments = ReadArguments(words, of);
  if (!arguments) {
    std::fprintf(stderr, "%s: %s\n%s", of.name.c_str(), arguments.error().message.c_str(),
                 Usage(of).c_str());
    return kFailed;
  }
  // None is lost between the start of the container and the wait for its end.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread.
  auto made = arguments->exec ? JoinContainer(*arguments, of.program)
                              : MakeContainer(*arguments, of.program);
  if (!made) {
    Answer(arguments->result, TextOf(made.error()));
    return kFailed;
  }
  Answer(arguments->result, TextOf(*made));
  if (const Status started = StartContainer(*arguments, *made); !started) {
    Answer(arguments->result, TextOf(started.error()));
    return kFailed;
  }
  Answer(arguments->result, R"({"started":{}})");
  return arguments->sibling ? 0 : StayParent(*made);
}

}  // namespace

int RunGatedProgram(int argc, char** argv, char** envp, const GatedProgram& of) {
  if (const Status sealed = container::RunSealed(argv, envp); !sealed) {
    std::fprintf(stderr, "%s: %s\n", of.name.c_str(), sealed.error().message.c_str());
    return kFailed;
  }
  return Run(
      argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>(), of);
}

}  // namespace gantry::init
