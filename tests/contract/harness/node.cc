// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/node.h"

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/ctl/client.h"
#include "core/link/channel.h"
#include "tests/contract/harness/setup.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;

constexpr std::array kApplets = {"sh",   "cat",      "echo",  "true", "false", "sleep", "kill",
                                 "seq",  "stty",     "tty",   "head", "id",    "pwd",   "test",
                                 "dd",   "mkdir",    "ls",    "env",  "wc",    "read",  "ps",
                                 "grep", "hostname", "touch", "stat", "mount", "umount"};

/// Without a shell, which may be what is missing. Empty: it is not there.
std::string InPath(const std::string& program) {
  if (program.contains('/')) {
    return access(program.c_str(), X_OK) == 0 ? program : "";
  }
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (const std::string file = folder + "/" + program; access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

std::string Missing() {
  if (geteuid() != 0) {
    return "needs root";
  }
  for (const char* program : {"sh", "busybox"}) {
    if (InPath(program).empty()) {
      return std::string(program) + " is not in PATH: install it, or set PATH";
    }
  }
  const Setup& setup = TheSetup();
  std::vector<std::string> files = {setup.programs + "/gantry-keeper", setup.programs + "/gantryd"};
  for (const Subject& subject : setup.subjects) {
    files.push_back(subject.plugin);
    for (const std::string& program : subject.programs) {
      if (InPath(program).empty()) {
        return program + " is not installed";
      }
    }
  }
  for (const std::string& file : files) {
    std::error_code error;
    if (!fs::exists(file, error)) {
      return file + " is not there";
    }
  }
  return "";
}

std::string Replaced(std::string text, std::string_view what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::chrono::steady_clock::time_point Soon() {
  return std::chrono::steady_clock::now() + e2e::kDeadline;
}

}  // namespace

Node::Node() : unavailable_(Missing()), rlimits_(link::OwnRlimits()) {
  char folder[] = "/tmp/gc-XXXXXX";
  if (unavailable_.empty() && mkdtemp(folder) == nullptr) {
    unavailable_ = "no folder below /tmp";
  }
  root_ = folder;
  if (unavailable_.empty()) {
    // Processes of other users have files below it.
    fs::permissions(root_, static_cast<fs::perms>(0711));
  }
}

Node::~Node() {
  if (!unavailable_.empty()) {
    return;
  }
  keeper_.reset();
  containerd_.reset();
  Clean();
}

void Node::Clean() const {
  if (!unavailable_.empty()) {
    return;
  }
  e2e::Eventually([&] {
    auto left = e2e::ProcessesWithEnv("GANTRY_RUN_DIR=" + run_dir());
    const auto inside = e2e::ProcessesInCgroup(cgroup() + "/");
    left.insert(left.end(), inside.begin(), inside.end());
    for (const e2e::HostProcess& process : left) {
      kill(process.pid, SIGKILL);
    }
    return left.empty();
  });
  for (const std::string& point : e2e::MountsBelow(root_)) {
    umount2(point.c_str(), MNT_DETACH);
  }
  for (const std::string& top : e2e::CgroupFolders(cgroup())) {
    for (const std::string& name : e2e::ListFolder(top)) {
      rmdir((top + "/" + name).c_str());
    }
    rmdir(top.c_str());
  }
  std::error_code error;
  fs::remove_all(root_ + "/oci", error);
  const char* keep = std::getenv("GANTRY_CONTRACT_KEEP");  // NOLINT(concurrency-mt-unsafe)
  if (keep == nullptr) {
    fs::remove_all(root_, error);
  }
}

std::string Node::cgroup() const { return "/" + fs::path(root_).filename().string(); }

void Node::MakeRootfs() const {
  constexpr auto kForAll = static_cast<fs::perms>(0755);  // Whatever the caller's umask is.
  for (const char* name : {"bin", "dev", "proc", "sys", "tmp", "etc", "mnt"}) {
    fs::create_directories(rootfs() + "/" + name);
    fs::permissions(rootfs() + "/" + name, kForAll);
  }
  fs::permissions(rootfs(), kForAll);
  fs::copy_file(InPath("busybox"), rootfs() + "/bin/busybox");
  fs::permissions(rootfs() + "/bin/busybox", kForAll);
  for (const char* applet : kApplets) {
    std::error_code error;
    fs::create_symlink("busybox", rootfs() + "/bin/" + applet, error);
  }
}

void Node::WriteConfiguration(const NodeAdditions& more) const {
  std::string handlers = "handlers:\n  broken: {backend: broken}\n" + more.handlers;
  // A plugin that is another one.
  std::string backends =
      "backends:\n  broken: {path: '" + TheSetup().subjects.front().plugin + "'}\n" + more.backends;
  for (const Subject& subject : TheSetup().subjects) {
    handlers += "  " + subject.name + ": {backend: " + subject.name +
                ", options: " + subject.handler_options + "}\n";
    backends += "  " + subject.name + ": {path: '" + subject.plugin +
                "', options: " + subject.backend_options + "}\n";
  }
  e2e::WriteText(root_ + "/gantry.yaml",
                 "version: 1\nlog: {level: debug}\n" +
                     Replaced(handlers + backends, "@ROOT@", root_) +
                     "timeouts: {stdio_drain: 2s, stdio_open: " + more.stdio_open + more.timeouts +
                     "}\n" + more.sections);
}

std::string Node::Start(const NodeAdditions& more) {
  fs::create_directories(run_dir());
  fs::permissions(run_dir(), fs::perms::owner_all);
  MakeRootfs();
  WriteConfiguration(more);
  containerd_ = std::make_unique<FakeContainerd>(root_ + "/events.sock");
  e2e::Program::Options options;
  options.log_path = root_ + "/keeper.out";
  options.env = {{"GANTRY_RUN_DIR", run_dir()},
                 {"GANTRY_CONFIG", root_ + "/gantry.yaml"},
                 {"GANTRY_LIBEXEC_DIR", TheSetup().programs}};
  keeper_ = std::make_unique<e2e::Program>(
      std::vector<std::string>{TheSetup().programs + "/gantry-keeper", "--run-dir", run_dir(),
                               "--foreground"},
      options);
  // Its own socket takes connections before the operator's is there; who answers has both.
  const bool listening = e2e::Eventually([&] { return Query().has_value(); });
  return listening ? "" : "the keeper does not listen: " + Log();
}

Result<std::string> Node::Announce(const std::string& id, const std::string& handler,
                                   const std::string& bundle, const std::string& group) const {
  link::Announce announce;
  announce.id = id;
  announce.ns = kNamespace;
  announce.bundle = bundle;
  announce.group = group;
  announce.grpc_address = root_ + "/containerd.sock";
  announce.ttrpc_address = containerd_->path();
  announce.handler = handler;
  announce.rlimits = rlimits_;
  GANTRY_TRY(UniqueFd socket, ConnectUnix(run_dir() + "/keeper.sock"));
  link::BlockingChannel channel(std::move(socket));
  GANTRY_TRY(const link::Announced announced, channel.Ask<link::Announced>(announce, Soon()));
  constexpr std::string_view kScheme = "unix://";
  return announced.address.substr(announced.address.starts_with(kScheme) ? kScheme.size() : 0);
}

Result<link::Deleted> Node::ShimDelete(const std::string& id, const std::string& bundle) const {
  link::Delete request;
  request.id = id;
  request.ns = kNamespace;
  request.bundle = bundle;
  request.grpc_address = root_ + "/containerd.sock";
  GANTRY_TRY(UniqueFd socket, ConnectUnix(run_dir() + "/keeper.sock"));
  link::BlockingChannel channel(std::move(socket));
  return channel.Ask<link::Deleted>(request, Soon());
}

Result<pid_t> Node::Upgrade(const std::string& program) const {
  GANTRY_TRY(const link::Upgraded done,
             ctl::UpgradeEngine(run_dir() + "/gantry.sock", program, false));
  return done.engine_pid;
}

Result<pid_t> Node::UpgradeKeeper(const std::string& program) const {
  return ctl::UpgradeKeeper(run_dir() + "/gantry.sock", program);
}

Result<link::KeeperStatus> Node::Query() const {
  GANTRY_TRY(UniqueFd socket, ConnectUnix(run_dir() + "/keeper.sock"));
  link::BlockingChannel channel(std::move(socket));
  return channel.Ask<link::KeeperStatus>(link::Query(), Soon());
}

pid_t Node::Engine() const {
  pid_t pid = 0;
  e2e::Eventually([&] {
    const auto status = Query();
    pid = status ? status->engine_pid : 0;
    return status && status->engine_state == static_cast<uint32_t>(link::EngineState::kUp);
  });
  return pid;
}

void Node::KillEngine() const {
  const pid_t pid = Engine();
  if (pid > 0) {
    kill(pid, SIGKILL);
    e2e::WaitGone(pid);
  }
}

std::string Node::Log() const {
  constexpr size_t kTail = 6000;
  std::string log;
  for (const std::string& file : {root_ + "/keeper.out", run_dir() + "/gantry.log"}) {
    const std::string text = e2e::ReadText(file);
    log += text.substr(text.size() > kTail ? text.size() - kTail : 0);
  }
  return log;
}

}  // namespace gantry::contract
