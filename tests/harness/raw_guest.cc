// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/raw_guest.h"

#include <signal.h>

#include <utility>

#include <gantry/protowire.h>

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kRunning = 2;
constexpr uint64_t kPaused = 4;

/// Of proto/containerd/task/task.proto.
constexpr uint32_t kExitOfWait = 1;

std::string OfExec(const std::string& id, const std::string& exec) {
  ProtoWriter request;
  request.Text(1, id);
  request.Text(2, exec);
  return request.Take();
}

std::string AnyOf(const std::string& type, const Json& value) {
  ProtoWriter any;
  any.Text(1, "types.containerd.io/opencontainers/runtime-spec/1/" + type);
  any.Bytes(2, value.dump());
  return any.Take();
}

std::string RootMount(const std::string& folder) {
  ProtoWriter mount;
  mount.Text(1, folder.empty() ? "tmpfs" : "bind");
  mount.Text(2, folder.empty() ? "tmpfs" : folder);
  if (!folder.empty()) {
    mount.Text(4, "rbind");
    mount.Text(4, "rw");
  }
  return mount.Take();
}

}  // namespace

RawGuest::RawGuest(const Node& node, const std::string& id, const std::vector<std::string>& args,
                   const Json& patch)
    : shim_(node, id), id_(id) {
  Json spec = {
      {"ociVersion", "1.0.2"},
      {"process", ProcessOf(args)},
      {"root", {{"path", "rootfs"}}},
      {"annotations", {{"of", "a test"}}},
      {"mounts",
       {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}},
        {{"destination", "/guests"},
         {"type", "bind"},
         {"source", node.settings().guests},
         {"options", {"rbind", "ro"}}}}},
      {"linux",
       {{"cgroupsPath", "/" + node.settings().ns + "/" + id},
        {"namespaces",
         {{{"type", "pid"}}, {{"type", "ipc"}}, {{"type", "uts"}}, {{"type", "mount"}}}}}}};
  spec.merge_patch(patch);
  WriteText(shim_.bundle() + "/config.json", spec.dump());
}

Json RawGuest::ProcessOf(const std::vector<std::string>& args) {
  return {{"cwd", "/"}, {"args", args}, {"env", {"PATH=/bin"}}, {"user", {{"uid", 0}, {"gid", 0}}}};
}

Status RawGuest::Create() {
  if (shim_.socket().empty()) {
    const Output started = shim_.Start();
    if (started.status != 0) {
      return Fail(Code::kInternal, "start a shim: {}", started.Text());
    }
  }
  ProtoWriter mounts;
  mounts.Bytes(3, RootMount(root_));
  return shim_.Call("Create", shim_.CreateRequest(shim_.bundle()) + mounts.str());
}

Status RawGuest::Start() { return shim_.Call("Start", shim_.IdRequest()); }

Status RawGuest::Run() {
  GANTRY_CHECK_OK(Create());
  return Start();
}

Status RawGuest::Kill(uint32_t signal) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Varint(3, signal);
  return shim_.Call("Kill", request.str());
}

Status RawGuest::Update(const Json& resources) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Bytes(2, AnyOf("LinuxResources", resources));
  return shim_.Call("Update", request.str());
}

Result<RawState> RawGuest::State() {
  GANTRY_TRY(const std::string answer, shim_.Ask("State", shim_.IdRequest()));
  RawState state;
  ProtoReader in(answer);
  while (in.Next()) {
    switch (in.field()) {
      case 3:
        state.pid = static_cast<pid_t>(in.number());
        break;
      case 4:
        state.status = in.number();
        break;
      case 9:
        state.exit_status = in.number();
        break;
      default:
        break;
    }
  }
  return state;
}

Result<uint64_t> RawGuest::Number(const std::string& method, const std::string& request,
                                  uint32_t field) {
  GANTRY_TRY(const std::string answer, shim_.Ask(method, request));
  uint64_t number = 0;
  ProtoReader in(answer);
  while (in.Next()) {
    number = in.field() == field ? in.number() : number;
  }
  return number;
}

Result<uint64_t> RawGuest::Wait() { return Number("Wait", shim_.IdRequest(), kExitOfWait); }

Status RawGuest::Delete() { return shim_.Call("Delete", shim_.IdRequest()); }

Result<uint64_t> RawGuest::Exec(const std::string& exec, const std::vector<std::string>& args) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, exec);
  request.Bytes(7, AnyOf("Process", ProcessOf(args)));
  GANTRY_CHECK_OK(shim_.Call("Exec", request.str()));
  GANTRY_CHECK_OK(shim_.Call("Start", OfExec(id_, exec)));
  GANTRY_TRY(const uint64_t code, Number("Wait", OfExec(id_, exec), kExitOfWait));
  GANTRY_CHECK_OK(shim_.Call("Delete", OfExec(id_, exec)));
  return code;
}

Status RawGuest::Finish() {
  if (const auto state = State(); state) {
    if (state->status == kRunning || state->status == kPaused) {
      IgnoreError(Kill(SIGKILL), "it may be ending");
      GANTRY_CHECK_OK(Wait());
    }
    GANTRY_CHECK_OK(Delete());
  }
  const Output deleted = shim_.Delete();
  return deleted.status == 0
             ? Status()
             : Status(Fail(Code::kInternal, "the shim's delete: {}", deleted.Text()));
}

}  // namespace gantry::e2e
