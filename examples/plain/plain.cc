// SPDX-License-Identifier: Apache-2.0
//
// A small, whole backend. Its containers are made by gantry-init, which the plugin carries: root,
// mounts, namespaces, user, rights, seccomp and terminal are as the spec has them, of an init and
// of an exec. The core does streams, exits, signals, pause, limits, statistics and memory events.
// What is left, and refused here, is what docs/gantry-init.md leaves to its caller: hooks, and the
// rules for devices, without which a container with CAP_MKNOD has the node's disks.
#include <linux/capability.h>
#include <sys/socket.h>

#include <csignal>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/plugin.h>
#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/json/json_member.h>
#include <gantry/toolkit/oci/exec.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/process/spawn_builder.h>

namespace {

using namespace gantry;
using Json = nlohmann::json;

constexpr std::chrono::seconds kEndLimit{5};

/// A process that gantry-init makes and that waits at its gate. Gate, answers and terminal are
/// one socket, which is stored: the next engine opens the gate, and where nobody has the socket
/// gantry-init gives the process up.
class GatedProcess {
 public:
  GatedProcess(SandboxContext& sandbox, ProcessContext& context, std::string tag)
      : sandbox_(sandbox),
        context_(context),
        tag_(std::move(tag)),
        stored_as_(Format("{:016x}", Fingerprint(tag_))) {}  // A tag may be too long for a name.

  const std::shared_ptr<HostProcess>& host() const { return host_; }

  Status Make(SpawnBuilder words, bool terminal, std::vector<std::string> cgroups) {
    GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_STREAM));
    const int number = words.Pass(std::move(ends.second));
    words.Add(Format("--gate={}", number));
    words.Add(Format("--result={}", number));
    words.Add(Format("--console={}", number));
    words.Add("--sibling");
    GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-init"));
    GANTRY_TRY(SpawnRequest request, words.Finish("gantry-init", program));
    request.cgroups = std::move(cgroups);
    GANTRY_TRY(Stdio stdio, context_.TakeStdio());
    for (auto [end, target] : {std::pair(&stdio.in, 0), {&stdio.out, 1}, {&stdio.err, 2}}) {
      if (end->fd) {
        request.fds.emplace_back(std::move(end->fd), target);
      }
    }
    GANTRY_CHECK_OK(sandbox_.Spawn(std::move(request)));
    socket_ = std::move(ends.first);
    GANTRY_TRY(const Json answer, Answer());
    if (!answer.contains("made")) {
      return Fail(Code::kInternal, "make '{}': gantry-init has ended without an answer", tag_);
    }
    if (terminal) {
      char byte = 0;
      std::vector<UniqueFd> master;
      GANTRY_CHECK_OK(RecvWithFds(socket_.get(), {&byte, 1}, master));
      GANTRY_CHECK_OK(context_.AttachConsole(master.empty() ? UniqueFd() : std::move(master[0])));
    }
    // In this order: what has the tag has a gate that can be opened, and what has none ends.
    GANTRY_CHECK_OK(sandbox_.Store(stored_as_, socket_));
    GANTRY_TRY(host_, sandbox_.AdoptAs({answer["made"].value("pid", 0)}, tag_));
    return context_.Bind(host_);
  }

  Status Recover() {
    host_ = sandbox_.FindSpawned(tag_);
    if (!host_) {
      sandbox_.Drop(stored_as_);
      return Fail(Code::kAborted, "recover '{}': it was never made", tag_);
    }
    return context_.Bind(host_);
  }

  bool IsOpen() const { return !sandbox_.Take(stored_as_); }

  /// Again: the answer has been read, and the socket is at its end.
  Status Open() {
    if (IsOpen()) {
      return {};
    }
    GANTRY_TRY(socket_, sandbox_.Take(stored_as_));
    send(socket_.get(), "x", 1, MSG_NOSIGNAL);
    GANTRY_CHECK_OK(Answer());
    sandbox_.Drop(stored_as_);
    socket_.reset();
    return {};
  }

  Status End() {
    socket_.reset();
    sandbox_.Drop(stored_as_);
    if (host_) {
      IgnoreError(host_->Signal(SIGKILL), "it may have ended");
      GANTRY_CHECK_OK(host_->Wait(kEndLimit));
    }
    return {};
  }

 private:
  /// The next line of gantry-init's, byte by byte, since the terminal comes behind the first one;
  /// an empty object at the end. Errors: the one that it tells.
  Result<Json> Answer() {
    std::string line;
    char byte = 0;
    while (recv(socket_.get(), &byte, 1, 0) == 1 && byte != '\n') {
      line += byte;
    }
    Json answer = ReadJson(line.empty() ? "{}" : line);
    const Json error = answer.value("error", Json::object());
    for (int code = 1; code <= static_cast<int>(Code::kUnauthenticated); ++code) {
      if (error.value("code", std::string()) == CodeName(static_cast<Code>(code))) {
        return std::unexpected(Error{static_cast<Code>(code),
                                     error.value("errno", 0),
                                     error.value("message", std::string()),
                                     {}});
      }
    }
    return answer;
  }

  SandboxContext& sandbox_;
  ProcessContext& context_;
  const std::string tag_, stored_as_;
  UniqueFd socket_;
  std::shared_ptr<HostProcess> host_;
};

Status CheckRights(const oci::ProcessSpec& process) {
  const bool makes_devices =
      process.capabilities && (process.capabilities->bounding >> CAP_MKNOD & 1) != 0;
  return makes_devices ? Status(Fail(Code::kUnimplemented,
                                     "'process.capabilities': CAP_MKNOD: "
                                     "this backend has no rules for devices"))
                       : Status();
}

class PlainExec final : public Process {
 public:
  PlainExec(GatedProcess process, std::function<Status(GatedProcess&)> make)
      : process_(std::move(process)), make_(std::move(make)) {}

  Status Start() override {
    if (!process_.host()) {
      GANTRY_CHECK_OK(make_(process_));
    }
    return process_.Open();
  }

  /// It may wait at its gate, and its Start not come again.
  Status Recover() {
    GANTRY_CHECK_OK(process_.Recover());
    return process_.Open();
  }

  Status Delete() override { return process_.End(); }

 private:
  GatedProcess process_;
  const std::function<Status(GatedProcess&)> make_;
};

class PlainContainer final : public Container {
 public:
  PlainContainer(const ContainerRequest& request, ContainerContext& context,
                 SandboxContext& sandbox)
      : request_(request),
        context_(context),
        sandbox_(sandbox),
        init_(sandbox, context.init(), "init/" + request.id.str()) {}

  Status Create() {
    GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
    GANTRY_CHECK_OK(CheckRights(spec.process));
    if (!JsonMember(request_.spec_json, "hooks").empty() || !request_.checkpoint.empty()) {
      return Fail(Code::kUnimplemented, "create container '{}': no hooks and no checkpoints here",
                  request_.id.str());
    }
    return Make(init_, {}, request_.terminal);
  }

  Status Recover() { return init_.Recover(); }

  Result<bool> HasStarted() override { return init_.IsOpen(); }

  Status Start() override { return init_.Open(); }

  Status Delete() override { return init_.End(); }

  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override {
    return MakeExec(request, context);
  }

  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override {
    GANTRY_TRY(auto exec, MakeExec(request, context));
    GANTRY_CHECK_OK(started ? exec->Recover() : Status());
    return exec;
  }

 private:
  /// `words` go before the container's: those of an exec, or none.
  Status Make(GatedProcess& process, SpawnBuilder words, bool terminal) {
    GANTRY_TRY(UniqueFd config, SealedMemfd("config.json", request_.spec_json, MemfdUse::kRead));
    words.AddFd("config", std::move(config));
    words.Add("--bundle=" + request_.bundle);
    words.Add("--id=" + request_.id.str());
    // With the limits of the spec, and removed by the core. Again: the same ones.
    GANTRY_TRY(auto cgroups, context_.MakeCgroups(CgroupDevices::kOfSpec));
    return process.Make(std::move(words), terminal, std::move(cgroups));
  }

  Result<std::unique_ptr<PlainExec>> MakeExec(const ExecRequest& request, ProcessContext& context) {
    GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request_.spec_json, "config.json"));
    GANTRY_TRY(const oci::ProcessSpec parsed, oci::ParseExec(request.process_json, spec));
    GANTRY_CHECK_OK(CheckRights(parsed));
    const std::string tag = Format("exec/{}/{}", request_.id.str(), request.id.str());
    return std::make_unique<PlainExec>(
        GatedProcess(sandbox_, context, tag), [this, request](GatedProcess& process) -> Status {
          SpawnBuilder words;
          words.Add("exec");
          const HostProcess& init = *init_.host();
          GANTRY_TRY(UniqueFd pidfd, OpenPidfd(ProcessId{init.pid().value, init.start_time()}));
          words.AddFd("init", std::move(pidfd));
          GANTRY_TRY(UniqueFd text,
                     SealedMemfd("process.json", request.process_json, MemfdUse::kRead));
          words.AddFd("process", std::move(text));
          return Make(process, std::move(words), request.terminal);
        });
  }

  const ContainerRequest request_;
  ContainerContext& context_;
  SandboxContext& sandbox_;
  GatedProcess init_;
};

class PlainSandbox final : public Sandbox {
 public:
  explicit PlainSandbox(SandboxContext& context) : context_(context) {}

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    auto container = std::make_unique<PlainContainer>(request, context, context_);
    if (Status created = container->Create(); !created) {
      IgnoreError(container->Delete(), "the first error counts");
      return std::unexpected(std::move(created).error());
    }
    return container;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string&) override {
    auto container = std::make_unique<PlainContainer>(request, context, context_);
    GANTRY_CHECK_OK(container->Recover());
    return container;
  }

 private:
  SandboxContext& context_;
};

class PlainBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {.name = "plain", .version = "0.1.0", .needs = {}}; }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    if (request.kind == SandboxKind::kPauseless) {
      return Fail(Code::kUnimplemented, "create sandbox '{}': a pod needs its pause container here",
                  request.id.str());
    }
    return std::make_unique<PlainSandbox>(context);
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest&, SandboxContext& context,
                                                  const std::string&) override {
    return std::make_unique<PlainSandbox>(context);
  }
};

Result<std::unique_ptr<SandboxBackend>> Create(const std::string&) {
  return std::make_unique<PlainBackend>();
}

}  // namespace

GANTRY_PLUGIN("plain", "0.1.0", Create);
