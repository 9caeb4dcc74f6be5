// SPDX-License-Identifier: Apache-2.0
//
// A small, whole backend. A container is a plain process of the host: it is born in
// cgroups of its own, unshares its mount, UTS, IPC and network namespaces and has
// the bundle's rootfs as its root. `unshare` and `nsenter` do that; what is left is
// to say what to run, and the core does the rest: streams, exits, signals, pause,
// limits, statistics, memory events, and all of it over a restart of the engine.
//
// It shows the interface and is no boundary: seccomp, capabilities, a pid namespace
// and most of the spec are left out, and the image's environment reaches `unshare`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include <gantry/plugin.h>

namespace {

using namespace gantry;
namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kUnshare = "/usr/bin/unshare";
constexpr const char* kNsenter = "/usr/bin/nsenter";
constexpr std::chrono::seconds kEndLimit{5};
constexpr int kGate = 3;
/// What the init is before its Start; then the rest of its arguments takes its place.
constexpr const char* kScript =
    R"(read -r go <&3 && exec 3<&- && root=$1 && echo "$2" >/proc/sys/kernel/hostname &&
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && shift 2 && exec "$@")";

/// `tool`, made to run what the OCI process object asks for.
SpawnRequest RequestOf(Words tool, const char* directory, const Json& process) {
  const Json user = process.value("user", Json::object());
  tool.push_back(directory + process.value("cwd", std::string("/")));
  tool.push_back("--setgid=" + std::to_string(user.value("gid", 0)));
  tool.push_back("--setuid=" + std::to_string(user.value("uid", 0)));
  tool.push_back("--");
  for (const Json& word : process.at("args")) {
    tool.push_back(word.get<std::string>());
  }
  SpawnRequest request;
  request.argv = std::move(tool);
  request.env = process.value("env", Words());
  return request;
}

/// Directories for a container's cgroups: one of v2, or one for each controller of v1.
Words CgroupsOf(const Json& spec, const std::string& id) {
  const fs::path root = "/sys/fs/cgroup";
  const std::string asked = spec.value("/linux/cgroupsPath"_json_pointer, std::string());
  const std::string path = asked.starts_with('/') ? asked : "/gantry-plain/" + id;
  if (fs::exists(root / "cgroup.controllers")) {
    return {root.string() + path};
  }
  Words all;
  for (const char* controller : {"memory", "cpu,cpuacct", "pids", "freezer"}) {
    if (fs::exists(root / controller)) {
      all.push_back((root / controller).string() + path);
    }
  }
  return all;
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

  /// False: no engine has spawned it, or its end is known.
  Result<bool> Recover() {
    host = sandbox.FindSpawned(tag);
    if (host) {
      GANTRY_CHECK_OK(context.Bind(host));
    }
    return host != nullptr;
  }

  Status End() const { return host ? EndOf(*host) : Status(); }

  static Status EndOf(HostProcess& process) {
    IgnoreError(process.Signal(SIGKILL), "it may have ended");
    GANTRY_CHECK_OK(process.Wait(kEndLimit));
    return {};
  }
};

class PlainExec final : public Process {
 public:
  PlainExec(Bound bound, SpawnRequest request)
      : bound_(std::move(bound)), request_(std::move(request)) {}

  Status Start() override { return bound_.host ? Status() : bound_.Run(std::move(request_)); }

  Status Delete() override { return bound_.End(); }

  Bound& bound() { return bound_; }

 private:
  Bound bound_;
  SpawnRequest request_;
};

class PlainContainer final : public Container {
 public:
  PlainContainer(const ContainerRequest& request, ContainerContext& context,
                 SandboxContext& sandbox)
      : id_(request.id.str()),
        gate_(request.bundle + "/plain.gate"),
        rootfs_(request.rootfs),
        spec_(Json::parse(request.spec_json)),
        cgroups_(CgroupsOf(spec_, id_)),
        sandbox_(sandbox),
        context_(context),
        init_{sandbox, context.init(), "init/" + id_} {}

  /// Its init is there from now on, and waits at the gate: a fifo, so that a
  /// restarted engine can open it too.
  Status Create(const std::string& netns) {
    SpawnRequest request = RequestOf({kUnshare, "--root=" + rootfs_}, "--wd=", spec_["process"]);
    const Words outer = {
        kUnshare, "--mount", "--uts", "--ipc", netns.empty() ? "--net" : "--", "/bin/sh",
        "-c",     kScript,   "gate",  rootfs_, spec_.value("hostname", id_)};
    request.argv.insert(request.argv.begin(), outer.begin(), outer.end());
    if (!netns.empty()) {
      request.namespaces.emplace_back(UniqueFd(open(netns.c_str(), O_RDONLY | O_CLOEXEC)),
                                      CLONE_NEWNET);
    }
    if (mkfifo(gate_.c_str(), 0600) != 0) {
      return FailErrno(errno, "make the fifo '{}'", gate_);
    }
    request.fds.emplace_back(UniqueFd(open(gate_.c_str(), O_RDWR | O_CLOEXEC)), kGate);
    request.cgroups = cgroups_;
    for (const std::string& directory : cgroups_) {
      fs::create_directories(directory);
    }
    GANTRY_CHECK_OK(init_.Run(std::move(request)));
    return context_.UseCgroupsOf(*init_.host);
  }

  Status Recover() {
    GANTRY_TRY(const bool found, init_.Recover());
    if (found) {
      IgnoreError(context_.UseCgroupsOf(*init_.host), "it may have ended");
    } else {
      context_.init().Exited({255, 0});  // Dropped where its end is on record.
    }
    return {};
  }

  Status Start() override {
    // Nobody reads any more: it has been started, or has ended.
    const UniqueFd gate(open(gate_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return !gate || write(gate.get(), "\n", 1) == 1 ? Status() : FailErrno(errno, "open the gate");
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

  /// What the container's processes have left running became the keeper's children.
  Status Delete() override {
    GANTRY_CHECK_OK(init_.End());
    for (const std::string& directory : cgroups_) {
      std::ifstream pids(directory + "/cgroup.procs");
      for (HostPid pid; pids >> pid.value;) {
        if (const auto left = sandbox_.Adopt(pid)) {
          GANTRY_CHECK_OK(Bound::EndOf(**left));
        }
      }
      if (rmdir(directory.c_str()) != 0 && errno != ENOENT) {
        return FailErrno(errno, "remove the cgroup '{}'", directory);
      }
    }
    unlink(gate_.c_str());
    return {};
  }

 private:
  Result<std::unique_ptr<PlainExec>> MakeExec(const ExecRequest& request, ProcessContext& context) {
    if (request.terminal) {
      return Fail(Code::kUnimplemented, "exec: this backend makes no terminals");
    }
    const int32_t pid = init_.host ? init_.host->pid().value : 0;
    SpawnRequest spawn = RequestOf({kNsenter, "--target=" + std::to_string(pid), "--mount", "--uts",
                                    "--ipc", "--net", "--root"},
                                   "--wdns=", Json::parse(request.process_json));
    spawn.cgroups = cgroups_;
    return std::make_unique<PlainExec>(
        Bound{sandbox_, context, "exec/" + id_ + "/" + request.id.str()}, std::move(spawn));
  }

  const std::string id_, gate_, rootfs_;
  const Json spec_;
  const Words cgroups_;
  SandboxContext& sandbox_;
  ContainerContext& context_;
  Bound init_;
};

class PlainSandbox final : public Sandbox {
 public:
  PlainSandbox(const SandboxRequest& request, SandboxContext& context)
      : netns_(request.netns_path), context_(context) {}

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override {
    if (request.terminal || !request.checkpoint.empty()) {
      return Fail(Code::kUnimplemented, "create container '{}': no terminals or checkpoints here",
                  request.id.str());
    }
    auto container = std::make_unique<PlainContainer>(request, context, context_);
    if (Status created = container->Create(netns_); !created) {
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
  const std::string netns_;
  SandboxContext& context_;
};

class PlainBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override {
    BackendInfo info;
    info.name = "plain";
    info.version = "0.1.0";
    for (const char* tool : {kUnshare, kNsenter}) {
      info.needs.push_back({tool, access(tool, X_OK) == 0, false, "of util-linux"});
    }
    return info;
  }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override {
    if (request.kind == SandboxKind::kPauseless) {
      return Fail(Code::kUnimplemented, "create sandbox '{}': a pod needs its pause container here",
                  request.id.str());
    }
    return std::make_unique<PlainSandbox>(request, context);
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string&) override {
    return std::make_unique<PlainSandbox>(request, context);
  }
};

Result<std::unique_ptr<SandboxBackend>> Create(const std::string&) {
  return std::make_unique<PlainBackend>();
}

}  // namespace

GANTRY_PLUGIN("plain", "0.1.0", Create);
