// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/init/gated_process.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/process/spawn_builder.h>

namespace gantry {
namespace {

using Json = nlohmann::json;

/// An answer is a line; of one that is longer the rest is not read.
constexpr size_t kMaxAnswerBytes = 64 << 10;

Status AddText(SpawnBuilder& words, const char* flag, const std::string& text) {
  GANTRY_TRY(UniqueFd file, SealedMemfd(flag, text, MemfdUse::kRead));
  words.AddFd(flag, std::move(file));
  return {};
}

Result<SpawnRequest> RequestOf(const UniqueFd& program, GatedRequest& from, UniqueFd socket) {
  SpawnBuilder words;
  if (from.init) {
    words.Add("exec");
    GANTRY_TRY(UniqueFd init,
               OpenPidfd(ProcessId{from.init->pid().value, from.init->start_time()}));
    words.AddFd("init", std::move(init));
    GANTRY_CHECK_OK(AddText(words, "process", from.process_json));
  }
  words.Add(Format("--bundle={}", from.bundle));
  words.Add(Format("--id={}", from.id));
  GANTRY_CHECK_OK(AddText(words, "config", from.spec_json));
  const int number = words.Pass(std::move(socket));
  for (const char* flag : {"gate", "result", "console"}) {
    words.Add(Format("--{}={}", flag, number));
  }
  words.Add("--sibling");
  words.Add(from.words);
  for (auto& [name, fd] : from.fds) {
    words.AddFd(name, std::move(fd));
  }
  GANTRY_TRY(SpawnRequest request, words.Finish(from.name, program));
  request.env = std::move(from.env);
  request.cgroups = std::move(from.cgroups);
  return request;
}

Status AddStreams(ProcessContext& context, SpawnRequest& request) {
  GANTRY_TRY(Stdio stdio, context.TakeStdio());
  int number = 0;
  for (StreamEnd* end : {&stdio.in, &stdio.out, &stdio.err}) {
    if (end->fd) {
      request.fds.emplace_back(std::move(end->fd), number);
    }
    ++number;
  }
  return {};
}

/// "": there is none, or it is no text.
std::string TextIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Of an answer that is an error: that one.
Status ErrorIn(const Json& answer) {
  if (!answer.is_object() || !answer.contains("error") || !answer["error"].is_object()) {
    return {};
  }
  const Json& told = answer["error"];
  const std::string message = TextIn(told, "message");
  const auto number = told.find("errno");
  Error error{
      .code = Code::kInternal,
      .sys_errno = number != told.end() && number->is_number_integer() ? number->get<int>() : 0,
      .message = message.empty() ? "its maker has failed and does not say why" : message,
      .detail = {}};
  const std::string name = TextIn(told, "code");
  for (int code = 1; code <= static_cast<int>(Code::kUnauthenticated); ++code) {
    if (CodeName(static_cast<Code>(code)) == name) {
      error.code = static_cast<Code>(code);
    }
  }
  return std::unexpected(std::move(error));
}

/// The next one; none: the socket is at its end. Byte by byte, since a terminal may come behind
/// it. Errors: the one that it tells.
Result<std::optional<Json>> NextAnswer(const UniqueFd& socket) {
  std::string line;
  char byte = 0;
  ssize_t got = 0;
  while (line.size() < kMaxAnswerBytes && byte != '\n') {
    got = recv(socket.get(), &byte, 1, 0);
    if (got == 1) {
      line += byte;
    } else if (got == 0 || errno != EINTR) {
      return std::optional<Json>();
    }
  }
  Json answer = ReadJson(line);
  GANTRY_CHECK_OK(ErrorIn(answer));
  return std::optional<Json>(std::move(answer));
}

/// The process that was made; 0: that is no such answer.
int32_t MadePid(const std::optional<Json>& answer) {
  if (!answer || !answer->is_object() || !answer->contains("made")) {
    return 0;
  }
  const Json& made = (*answer)["made"];
  return made.is_object() && made.contains("pid") && made["pid"].is_number_integer()
             ? made["pid"].get<int32_t>()
             : 0;
}

}  // namespace

Status CheckDevices(const oci::ProcessSpec& process, const std::vector<std::string>& cgroups) {
  const bool makes_devices =
      process.capabilities && (process.capabilities->bounding >> CAP_MKNOD & 1) != 0;
  if (makes_devices && cgroups.empty()) {
    return Fail(Code::kUnimplemented,
                "'process.capabilities': CAP_MKNOD without 'linux.cgroupsPath': only a cgroup "
                "keeps a container from the node's devices");
  }
  return {};
}

GatedProcess::GatedProcess(SandboxContext& sandbox, ProcessContext& context, std::string tag)
    : sandbox_(sandbox),
      context_(context),
      tag_(std::move(tag)),
      stored_as_(Format("gate-{:016x}", Fingerprint(tag_))) {}

Status GatedProcess::TakeConsole() {
  char byte = 0;
  std::vector<UniqueFd> master;
  GANTRY_CHECK_OK(RecvWithFds(socket_.get(), {&byte, 1}, master));
  if (master.size() != 1) {
    return Fail(Code::kInternal, "make process '{}': its maker sends no terminal", tag_);
  }
  return context_.AttachConsole(std::move(master.front()));
}

Status GatedProcess::Make(const UniqueFd& program, GatedRequest request) {
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_STREAM));
  GANTRY_TRY(SpawnRequest spawn, RequestOf(program, request, std::move(ends.second)));
  GANTRY_CHECK_OK(AddStreams(context_, spawn));
  GANTRY_TRY(maker_, sandbox_.Spawn(std::move(spawn)));
  socket_ = std::move(ends.first);
  Status made = AwaitMade(request);
  if (!made) {
    sandbox_.Drop(stored_as_);
  }
  return made;
}

Status GatedProcess::AwaitMade(const GatedRequest& request) {
  // While the maker works; it counts from the tag on.
  GANTRY_CHECK_OK(sandbox_.Store(stored_as_, socket_));
  GANTRY_TRY(const std::optional<Json> answer, NextAnswer(socket_));
  const HostPid made{MadePid(answer)};
  if (!made) {
    return Fail(Code::kInternal, "make process '{}': {} has ended without an answer", tag_,
                request.name);
  }
  if (request.terminal) {
    GANTRY_CHECK_OK(TakeConsole());
  }
  GANTRY_TRY(host_, sandbox_.AdoptAs(made, tag_));
  return context_.Bind(host_);
}

Status GatedProcess::Recover() {
  host_ = sandbox_.FindSpawned(tag_);
  if (!host_) {
    sandbox_.Drop(stored_as_);
    return Fail(Code::kAborted, "recover process '{}': it was never made", tag_);
  }
  return context_.Bind(host_);
}

Result<bool> GatedProcess::IsOpen() const {
  auto stored = sandbox_.Take(stored_as_);
  if (!stored && stored.error().code != Code::kNotFound) {
    return std::unexpected(std::move(stored).error());
  }
  return !stored;
}

Status GatedProcess::Open() {
  // Who has made it has the socket; an engine after it asks for that.
  if (!socket_) {
    auto stored = sandbox_.Take(stored_as_);
    if (!stored) {
      return stored.error().code == Code::kNotFound ? Status()
                                                    : std::unexpected(std::move(stored).error());
    }
    socket_ = std::move(*stored);
  }
  // Where an engine before has opened it nobody reads that, and its answer may have been read.
  send(socket_.get(), "x", 1, MSG_NOSIGNAL);
  GANTRY_CHECK_OK(NextAnswer(socket_));
  sandbox_.Drop(stored_as_);
  socket_.reset();
  return {};
}

Status GatedProcess::End(std::chrono::milliseconds limit) {
  // Before its gate is closed, which would end it, too, but with a code of its own.
  if (host_) {
    IgnoreError(host_->Signal(SIGKILL), "it may have ended");
  }
  socket_.reset();
  sandbox_.Drop(stored_as_);
  if (maker_) {
    // Where it still waits at the gate, or makes something: what it has made ends without it.
    IgnoreError(maker_->Signal(SIGKILL), "it may have ended");
    GANTRY_CHECK_OK(maker_->Wait(limit));
  }
  if (host_) {
    GANTRY_CHECK_OK(host_->Wait(limit));
  }
  return {};
}

}  // namespace gantry
