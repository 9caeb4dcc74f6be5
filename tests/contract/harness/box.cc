// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/box.h"

#include <signal.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/own_network.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;

Json Mount(const char* destination, const char* type, std::vector<std::string> options) {
  return {{"destination", destination}, {"type", type}, {"source", type}, {"options", options}};
}

/// The answer, kept for who wonders why a rule is not met.
template <class Response, class Request>
Result<Response> Call(const TaskClient& client, const std::string& method, const Request& request) {
  Result<Response> answer = client.Call<Response>(method, request);
  std::string exec;
  if constexpr (requires { request.exec_id(); }) {
    exec = request.exec_id();
  }
  NoteCall(method, request.id(), exec, Plain(answer));
  return answer;
}

}  // namespace

bool& OwnNetworks() {
  static bool wanted = false;
  return wanted;
}

Json MakeProcess(const std::vector<std::string>& args, bool terminal) {
  return {{"terminal", terminal},
          {"user", {{"uid", 0}, {"gid", 0}}},
          {"args", args},
          {"env", {"PATH=/bin"}},
          {"cwd", "/"}};
}

Json MakeSpec(const Node& node, const std::string& id, const BoxOptions& options) {
  Json spec = {
      {"ociVersion", "1.0.2"},
      {"process", MakeProcess(options.args, options.terminal)},
      {"root", {{"path", "rootfs"}}},
      {"hostname", "box"},
      {"mounts",
       {Mount("/proc", "proc", {"nosuid", "noexec", "nodev"}),
        Mount("/dev", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
        Mount("/dev/pts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666"})}},
      {"linux",
       {{"cgroupsPath", node.cgroup() + "/" + id},
        {"namespaces",
         {{{"type", "pid"}}, {{"type", "ipc"}}, {{"type", "uts"}}, {{"type", "mount"}}}}}}};
  if (OwnNetworks()) {
    spec["linux"]["namespaces"].push_back({{"type", "network"}});
  }
  spec.merge_patch(options.spec);
  return spec;
}

Box::Box(Node& node, std::string id, std::string handler, BoxOptions options)
    : node_(node),
      id_(std::move(id)),
      handler_(std::move(handler)),
      options_(std::move(options)),
      bundle_(node.root() + "/bundles/" + id_),
      client_("") {}

void Box::WriteBundle() const {
  fs::create_directories(bundle_ + "/rootfs");
  e2e::WriteText(bundle_ + "/config.json", MakeSpec(node_, id_, options_).dump());
}

void Box::Join(const std::string& socket) {
  WriteBundle();
  client_ = TaskClient(socket);
}

bool Box::Announce() {
  WriteBundle();
  has_shim_ = true;
  const auto path = node_.Announce(id_, handler_, bundle_, options_.group);
  client_ = TaskClient(path.value_or(""));
  return path.has_value();
}

pb::CreateTaskRequest Box::CreateRequest() const {
  pb::CreateTaskRequest request;
  request.set_id(id_);
  request.set_bundle(bundle_);
  request.set_terminal(options_.terminal);
  request.set_stdin(options_.in);
  request.set_stdout(options_.out);
  auto* mount = request.add_rootfs();
  mount->set_type("bind");
  mount->set_source(node_.rootfs());
  mount->add_options("rbind");
  mount->add_options("rw");
  return request;
}

Result<pb::CreateTaskResponse> Box::Create() const {
  return Call<pb::CreateTaskResponse>(client_, "Create", CreateRequest());
}

Result<pb::StartResponse> Box::Start(const std::string& exec) const {
  pb::StartRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  return Call<pb::StartResponse>(client_, "Start", request);
}

Result<pb::DeleteResponse> Box::Delete(const std::string& exec) const {
  pb::DeleteRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  return Call<pb::DeleteResponse>(client_, "Delete", request);
}

Result<pb::StateResponse> Box::State(const std::string& exec) const {
  pb::StateRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  return Call<pb::StateResponse>(client_, "State", request);
}

Result<pb::WaitResponse> Box::Wait(const std::string& exec) const {
  pb::WaitRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  return Call<pb::WaitResponse>(client_, "Wait", request);
}

Status Box::Kill(uint32_t signal, const std::string& exec, bool all) const {
  pb::KillRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  request.set_signal(signal);
  request.set_all(all);
  return Plain(Call<wire::Empty>(client_, "Kill", request));
}

Status Box::Exec(const std::string& exec, const std::vector<std::string>& args, bool terminal,
                 const std::string& out) const {
  return ExecProcess(exec, MakeProcess(args, terminal), out);
}

Status Box::ExecProcess(const std::string& exec, const Json& process,
                        const std::string& out) const {
  pb::ExecProcessRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  request.set_terminal(process.value("terminal", false));
  request.set_stdout(out);
  request.mutable_spec()->set_type_url("types.containerd.io/opencontainers/runtime-spec/1/Process");
  request.mutable_spec()->set_value(process.dump());
  return Plain(Call<wire::Empty>(client_, "Exec", request));
}

Status Box::Pause() const {
  pb::PauseRequest request;
  request.set_id(id_);
  return Plain(Call<wire::Empty>(client_, "Pause", request));
}

Status Box::Resume() const {
  pb::ResumeRequest request;
  request.set_id(id_);
  return Plain(Call<wire::Empty>(client_, "Resume", request));
}

Status Box::Resize(const std::string& exec) const {
  pb::ResizePtyRequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  request.set_width(100);
  request.set_height(40);
  return Plain(Call<wire::Empty>(client_, "ResizePty", request));
}

Status Box::CloseIO(const std::string& exec) const {
  pb::CloseIORequest request;
  request.set_id(id_);
  request.set_exec_id(exec);
  request.set_stdin(true);
  return Plain(Call<wire::Empty>(client_, "CloseIO", request));
}

Status Box::Update(const std::string& resources) const {
  pb::UpdateTaskRequest request;
  request.set_id(id_);
  request.mutable_resources()->set_type_url(
      "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources");
  request.mutable_resources()->set_value(resources);
  return Plain(Call<wire::Empty>(client_, "Update", request));
}

Status Box::Checkpoint() const {
  pb::CheckpointTaskRequest request;
  request.set_id(id_);
  request.set_path(bundle_ + "/checkpoint");
  return Plain(Call<wire::Empty>(client_, "Checkpoint", request));
}

Result<pb::StatsResponse> Box::Stats() const {
  pb::StatsRequest request;
  request.set_id(id_);
  return Call<pb::StatsResponse>(client_, "Stats", request);
}

Result<pb::PidsResponse> Box::Pids() const {
  pb::PidsRequest request;
  request.set_id(id_);
  return Call<pb::PidsResponse>(client_, "Pids", request);
}

Result<pb::ConnectResponse> Box::Connect() const {
  pb::ConnectRequest request;
  request.set_id(id_);
  return Call<pb::ConnectResponse>(client_, "Connect", request);
}

Status Box::Shutdown() const {
  pb::ShutdownRequest request;
  request.set_id(id_);
  return Plain(Call<wire::Empty>(client_, "Shutdown", request));
}

Status Box::Finish() {
  if (const auto state = State(); state) {
    if (state->status() == pb::PAUSED || state->status() == pb::RUNNING) {
      IgnoreError(Kill(SIGKILL), "it may be ending");
      IgnoreError(Resume(), "only where it was paused");
      GANTRY_CHECK_OK(Wait());
    }
    GANTRY_CHECK_OK(Delete());
  }
  if (has_shim_) {
    GANTRY_CHECK_OK(node_.ShimDelete(id_, bundle_));
  }
  for (const std::string& name : e2e::ListFolder(bundle_)) {
    if (name.starts_with("gantry.record")) {
      return Fail(Code::kInternal, "'{}' is left in the bundle", name);
    }
  }
  for (const std::string& point : e2e::MountsBelow(bundle_)) {
    return Fail(Code::kInternal, "the mount '{}' is left", point);
  }
  std::error_code error;
  fs::remove_all(bundle_, error);
  return {};
}

}  // namespace gantry::contract
