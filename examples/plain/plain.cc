// SPDX-License-Identifier: Apache-2.0
//
// A small, whole backend. A container is a process in cgroups and in pid, mount, UTS,
// IPC and network namespaces of its own, with the bundle's rootfs as its root.
// `unshare` and `nsenter` do that; what is left is to say what to run, and the core
// does the rest: streams, exits, pause, limits, statistics, memory events, and all of
// it over a restart of the engine.
//
// It shows the interface and is no boundary: the image's environment reaches `unshare`.
// What of the spec it cannot give (refused.h) it refuses with kUnimplemented, as every
// backend must: a container without what confines it is worse than none. Its handler's
// option `unconfined: true` lets such containers run all the same.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/plugin.h>

#include "refused.h"

namespace {

using namespace gantry;
namespace fs = std::filesystem;
using Json = nlohmann::json;
using plain::CheckProcess;
using plain::CheckSpec;
using plain::IsUnconfined;
using plain::LimitsOf;
using Words = std::vector<std::string>;

constexpr const char* kUnshare = "/usr/bin/unshare";
constexpr const char* kNsenter = "/usr/bin/nsenter";
constexpr const char* kSetpriv = "/usr/bin/setpriv";
constexpr std::chrono::seconds kEndLimit{5};
constexpr int kGate = 3;
constexpr int kReady = 4;
/// What the init is before its Start: it mounts what the spec asks for, says so, and
/// waits. Then the rest of its arguments takes its place.
constexpr const char* kScript =
    R"(echo "$1" >/proc/sys/kernel/hostname && shift || exit 126
    while [ "$1" != -- ]; do
      case "$2" in *bind*) [ -d "$3" ] ;; esac && mkdir -p "$4" ||
        { mkdir -p "${4%/*}" && touch "$4"; } || exit 126
      mount -t "$1" -o "$2" "$3" "$4" || exit 126
      shift 4
    done
    shift
    echo >&4 && exec 4>&- && read -r go <&3 && exec 3<&- && unset PWD && exec "$@")";
/// What an exec is first: it says that it is in the container's namespaces, and goes
/// on where an engine that has been killed does not hear it.
constexpr const char* kExecScript = R"((echo >&4); exec 4>&- && unset PWD && exec "$@")";

/// Looked for before anything runs, so that it can be named.
Status FindProgram(const std::string& rootfs, const Json& process) {
  const std::string program = process.at("args").at(0);
  std::string path = "/bin:/usr/bin";
  for (const auto& entry : process.value("env", Words())) {
    path = entry.starts_with("PATH=") ? entry.substr(5) : path;
  }
  std::istringstream folders(program.contains('/') ? "/" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::symlink_status(rootfs + folder + "/" + program).type() != fs::file_type::not_found) {
      return {};
    }
  }
  return Fail(Code::kNotFound, "run '{}': no such file or directory", program);
}

/// `words`, and after them what the OCI process object asks for, in `rootfs`.
SpawnRequest RequestOf(Words words, const std::string& rootfs, const Json& process) {
  const Json user = process.value("user", Json::object());
  if (process.value("noNewPrivileges", false)) {
    words.insert(words.end(), {kSetpriv, "--no-new-privs"});
  }
  words.insert(words.end(),
               {kUnshare, "--root=" + rootfs, "--wd=" + process.value("cwd", std::string("/")),
                "--setgid=" + std::to_string(user.value("gid", 0)),
                "--setuid=" + std::to_string(user.value("uid", 0)), "--"});
  for (const Json& word : process.at("args")) {
    words.push_back(word.get<std::string>());
  }
  SpawnRequest request;
  request.argv = std::move(words);
  request.env = process.value("env", Words());
  return request;
}

/// A process of a container, and its process of the host.
struct Bound {
  SandboxContext& sandbox;
  ProcessContext& context;
  const std::string tag;
  std::shared_ptr<HostProcess> host = nullptr;

  Status Run(SpawnRequest request) {
    GANTRY_TRY(Stdio stdio, context.TakeStdio());
    int number = 0;
    for (StreamEnd* end : {&stdio.in, &stdio.out, &stdio.err}) {
      if (end->fd) {
        request.fds.emplace_back(std::move(end->fd), number);
      }
      ++number;
    }
    request.tag = tag;
    GANTRY_TRY(host, sandbox.Spawn(std::move(request)));
    return context.Bind(host);
  }

  /// Returns when its script has said that it is ready.
  Status RunUntilReady(SpawnRequest request) {
    std::array<int, 2> pipe = {-1, -1};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
      return FailErrno(errno, "make a pipe");
    }
    const UniqueFd ready(pipe[0]);
    request.fds.emplace_back(UniqueFd(pipe[1]), kReady);
    GANTRY_CHECK_OK(Run(std::move(request)));
    char byte = 0;
    if (read(ready.get(), &byte, 1) != 1) {
      return Fail(Code::kInternal, "run '{}': its namespaces or mounts failed", tag);
    }
    return {};
  }

  /// False: no engine has spawned it, or its end is known.
  Result<bool> Recover() {
    host = sandbox.FindSpawned(tag);
    if (host) {
      GANTRY_CHECK_OK(context.Bind(host));
    }
    return host != nullptr;
  }

  /// `unshare` and `nsenter` wait for the one child that they have made.
  HostPid Inner() const {
    const std::string pid = host ? std::to_string(host->pid().value) : "0";
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    HostPid inner;
    children >> inner.value;
    return inner;
  }

  Status Kill(uint32_t signal) const {
    if (!host || host->Ended()) {
      return Fail(Code::kNotFound, "process already finished: not found");
    }
    const HostPid inner = Inner();
    if (inner && kill(inner.value, static_cast<int>(signal)) == 0) {
      return {};
    }
    return host->Signal(static_cast<int>(signal));
  }

  Status End() const {
    if (!host) {
      return {};
    }
    IgnoreError(Kill(SIGKILL), "it may have ended");
    GANTRY_CHECK_OK(host->Wait(kEndLimit));
    return {};
  }
};

class PlainExec final : public Process {
 public:
  PlainExec(Bound bound, SpawnRequest request)
      : bound_(std::move(bound)), request_(std::move(request)) {}

  Status Start() override {
    return bound_.host ? Status() : bound_.RunUntilReady(std::move(request_));
  }

  Status Kill(uint32_t signal) override { return bound_.Kill(signal); }

  Status Delete() override { return bound_.End(); }

  Bound& bound() { return bound_; }

 private:
  Bound bound_;
  SpawnRequest request_;
};

class PlainContainer final : public Container {
 public:
  PlainContainer(const ContainerRequest& request, ContainerContext& context,
                 SandboxContext& sandbox, bool unconfined)
      : unconfined_(unconfined),
        id_(request.id.str()),
        gate_(request.bundle + "/plain.gate"),
        rootfs_(request.rootfs),
        spec_(ReadJson(request.spec_json, kSpecJson)),
        sandbox_(sandbox),
        context_(context),
        init_{sandbox, context.init(), "init/" + id_} {}

  /// Its init is there from now on, and waits at the gate: a fifo, so that a
  /// restarted engine can open it too.
  Status Create(const std::string& netns) {
    Words outer = {kUnshare, "--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc"};
    outer.push_back(netns.empty() ? "--net" : "--");
    outer.insert(outer.end(), {"/bin/sh", "-c", kScript, "gate", spec_.value("hostname", id_)});
    if (!unconfined_) {
      GANTRY_CHECK_OK(CheckSpec(spec_));
    }
    GANTRY_CHECK_OK(FindProgram(rootfs_, spec_["process"]));
    GANTRY_CHECK_OK(AddMounts(outer));
    SpawnRequest request = RequestOf(std::move(outer), rootfs_, spec_["process"]);
    if (!netns.empty()) {
      request.namespaces.emplace_back(UniqueFd(open(netns.c_str(), O_RDONLY | O_CLOEXEC)),
                                      CLONE_NEWNET);
    }
    if (mkfifo(gate_.c_str(), 0600) != 0) {
      return FailErrno(errno, "make the fifo '{}'", gate_);
    }
    request.fds.emplace_back(UniqueFd(open(gate_.c_str(), O_RDWR | O_CLOEXEC)), kGate);
    GANTRY_TRY(request.rlimits, LimitsOf(spec_["process"]));
    // With the limits and the rules of the spec, and removed by the core.
    GANTRY_TRY(request.cgroups, context_.MakeCgroups());
    return init_.RunUntilReady(std::move(request));
  }

  Status Recover() {
    GANTRY_TRY(const bool found, init_.Recover());
    if (!found) {
      context_.init().Exited({255, 0});  // Dropped where its end is on record.
    }
    return {};
  }

  Status Kill(uint32_t signal) override { return init_.Kill(signal); }

  Result<bool> HasStarted() override { return access(gate_.c_str(), F_OK) != 0; }

  Status Start() override {
    const UniqueFd gate(open(gate_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (!gate) {
      return {};  // It has been started, or nobody waits behind it: it has ended.
    }
    if (write(gate.get(), "\n", 1) != 1) {
      return FailErrno(errno, "open the gate '{}'", gate_);
    }
    unlink(gate_.c_str());  // Not before: what is started twice is harmless, not at all is not.
    return {};
  }

  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override {
    return MakeExec(request, context);
  }

  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override {
    GANTRY_TRY(auto exec, MakeExec(request, context));
    GANTRY_TRY(const bool found, started ? exec->bound().Recover() : Result<bool>(true));
    if (!found) {
      return Fail(Code::kAborted, "recover exec '{}': it was not started", request.id.str());
    }
    return exec;
  }

  /// With the first process of its pid namespace all in it have ended, those of execs too.
  Status Delete() override {
    GANTRY_CHECK_OK(init_.End());
    unlink(gate_.c_str());
    return {};
  }

 private:
  /// Four words for each mount, and an end.
  Status AddMounts(Words& words) const {
    for (const Json& mount : spec_.value("mounts", Json::array())) {
      const std::string source = mount.value("source", std::string("none"));
      std::string options;
      for (const Json& option : mount.value("options", Json::array())) {
        options += (options.empty() ? "" : ",") + option.get<std::string>();
      }
      if (options.contains("bind") && !fs::exists(source)) {
        return Fail(Code::kInvalidArgument, "create container '{}': no '{}' to mount", id_, source);
      }
      words.insert(words.end(), {mount.value("type", std::string("none")),
                                 options.empty() ? "defaults" : options, source,
                                 rootfs_ + mount.at("destination").get<std::string>()});
    }
    // What every container has. Source: runtime-spec 1.2, config-linux.md, default devices.
    for (const char* device : {"null", "zero", "full", "random", "urandom", "tty"}) {
      const std::string path = Format("/dev/{}", device);
      words.insert(words.end(), {"none", "bind", path, rootfs_ + path});
    }
    words.push_back("--");
    return {};
  }

  Result<std::unique_ptr<PlainExec>> MakeExec(const ExecRequest& request, ProcessContext& context) {
    if (request.terminal) {
      return Fail(Code::kUnimplemented, "exec: this backend makes no terminals");
    }
    const Json process = ReadJson(request.process_json, kSpecJson);
    if (!unconfined_) {
      GANTRY_CHECK_OK(CheckProcess(process));
    }
    GANTRY_CHECK_OK(FindProgram(rootfs_, process));
    SpawnRequest spawn =
        RequestOf({kNsenter, "--target=" + std::to_string(init_.Inner().value), "--pid", "--mount",
                   "--uts", "--ipc", "--net", "--", "/bin/sh", "-c", kExecScript, "exec"},
                  rootfs_, process);
    GANTRY_TRY(spawn.rlimits, LimitsOf(process));
    GANTRY_TRY(spawn.cgroups, context_.MakeCgroups());  // The same ones.
    return std::make_unique<PlainExec>(
        Bound{sandbox_, context, "exec/" + id_ + "/" + request.id.str()}, std::move(spawn));
  }

  const bool unconfined_;
  const std::string id_, gate_, rootfs_;
  const Json spec_;
  SandboxContext& sandbox_;
  ContainerContext& context_;
  Bound init_;
};

class PlainSandbox final : public Sandbox {
 public:
  PlainSandbox(const SandboxRequest& request, SandboxContext& context, bool unconfined)
      : netns_(request.netns_path), unconfined_(unconfined), context_(context) {}

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    if (request.terminal || !request.checkpoint.empty()) {
      return Fail(Code::kUnimplemented, "create container '{}': no terminals or checkpoints here",
                  request.id.str());
    }
    auto container = std::make_unique<PlainContainer>(request, context, context_, unconfined_);
    if (Status created = container->Create(netns_); !created) {
      IgnoreError(container->Delete(), "the first error counts");
      return std::unexpected(std::move(created).error());
    }
    return container;
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string&) override {
    auto container = std::make_unique<PlainContainer>(request, context, context_, unconfined_);
    GANTRY_CHECK_OK(container->Recover());
    return container;
  }

 private:
  const std::string netns_;
  const bool unconfined_;
  SandboxContext& context_;
};

class PlainBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override {
    BackendInfo info;
    info.name = "plain";
    info.version = "0.1.0";
    for (const char* tool : {kUnshare, kNsenter, kSetpriv}) {
      info.needs.push_back({tool, access(tool, X_OK) == 0, false, "of util-linux"});
    }
    return info;
  }

  Status CheckOptions(const std::string& options_json) override {
    GANTRY_CHECK_OK(IsUnconfined(options_json));
    return {};
  }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    if (request.kind == SandboxKind::kPauseless) {
      return Fail(Code::kUnimplemented, "create sandbox '{}': a pod needs its pause container here",
                  request.id.str());
    }
    GANTRY_TRY(const bool unconfined, IsUnconfined(request.options_json));
    return std::make_unique<PlainSandbox>(request, context, unconfined);
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string&) override {
    GANTRY_TRY(const bool unconfined, IsUnconfined(request.options_json));
    return std::make_unique<PlainSandbox>(request, context, unconfined);
  }
};

Result<std::unique_ptr<SandboxBackend>> Create(const std::string&) {
  return std::make_unique<PlainBackend>();
}

}  // namespace

GANTRY_PLUGIN("plain", "0.1.0", Create);
