// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/churn/task.h"

#include <gantry/format.h>
#include <gantry/protowire.h>

#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

constexpr const char* kTaskService = "containerd.task.v2.Task";

std::string ProcessJson(const std::vector<std::string>& command, bool terminal) {
  std::string args;
  for (const std::string& word : command) {
    // No word of a test needs an escape.
    args += (args.empty() ? "\"" : ",\"") + word + "\"";
  }
  return Format(R"({{"terminal":{},"cwd":"/","env":["PATH=/bin"],"args":[{}],)"
                R"("user":{{"uid":0,"gid":0}}}})",
                terminal, args);
}

std::string SpecJson(const std::string& process, const std::string& cgroup) {
  return Format(
      R"({{"ociVersion":"1.0.2","process":{},"root":{{"path":"rootfs"}},)"
      R"("mounts":[{{"destination":"/proc","type":"proc","source":"proc"}},)"
      R"({{"destination":"/dev","type":"tmpfs","source":"tmpfs"}},)"
      R"({{"destination":"/dev/pts","type":"devpts","source":"devpts",)"
      R"("options":["newinstance","ptmxmode=0666"]}}],)"
      R"("linux":{{"cgroupsPath":"{}","namespaces":[{{"type":"pid"}},{{"type":"mount"}}]}}}})",
      process, cgroup);
}

std::string BindMount(const std::string& source) {
  ProtoWriter mount;
  mount.Text(1, "bind");
  mount.Text(2, source);
  mount.Text(4, "rbind");
  mount.Text(4, "ro");
  return mount.Take();
}

void AddStreams(ProtoWriter& request, uint32_t first_field, const TaskStreams& streams) {
  request.Bool(first_field, streams.terminal);
  request.Text(first_field + 1, streams.in);
  request.Text(first_field + 2, streams.out);
  request.Text(first_field + 3, streams.err);
}

/// WaitResponse has it as field 1, DeleteResponse as field 2.
Ended ReadEnded(const std::string& answer, uint32_t field) {
  Ended ended;
  for (ProtoReader reader(answer); reader.Next();) {
    if (reader.field() == field) {
      ended.status = static_cast<uint32_t>(reader.number());
    }
  }
  return ended;
}

}  // namespace

ChurnTask::ChurnTask(const e2e::Node& node, std::string id, std::string rootfs,
                     const std::vector<std::string>& command, TaskStreams streams)
    : id_(std::move(id)),
      rootfs_(std::move(rootfs)),
      streams_(std::move(streams)),
      shim_(node, id_) {
  e2e::WriteText(shim_.bundle() + "/config.json", SpecJson(ProcessJson(command, streams_.terminal),
                                                           "/" + node.settings().ns + "/" + id_));
}

Result<std::string> ChurnTask::Ask(const char* method, const std::string& request) {
  auto answer = connection_->Call(kTaskService, method, request, e2e::kLong);
  if (!answer) {
    return Fail(answer.error().code, "{}: {}", method, answer.error().message);
  }
  return answer;
}

Status ChurnTask::Call(const char* method, const std::string& request) {
  GANTRY_CHECK_OK(Ask(method, request));
  return {};
}

std::string ChurnTask::Named(const std::string& exec) const {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, exec);
  return request.Take();
}

Status ChurnTask::Announce() {
  const e2e::Output started = shim_.Start();
  if (started.status != 0) {
    return Fail(Code::kUnknown, "start of the shim: {}", started.Text());
  }
  GANTRY_TRY(connection_, rpc::BlockingClient::Connect(shim_.socket()));
  return {};
}

Status ChurnTask::Create() {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, bundle());
  request.Bytes(3, BindMount(rootfs_));
  AddStreams(request, 4, streams_);
  return Call("Create", request.str());
}

Status ChurnTask::Start(const std::string& exec) { return Call("Start", Named(exec)); }

Result<int> ChurnTask::State() {
  GANTRY_TRY(const std::string answer, Ask("State", Named()));
  return static_cast<int>(ReadEnded(answer, 4).status);
}

Status ChurnTask::Exec(const std::string& exec, const std::vector<std::string>& command,
                       const TaskStreams& streams) {
  ProtoWriter spec;
  spec.Text(1, "types.containerd.io/opencontainers/runtime-spec/1/Process");
  spec.Bytes(2, ProcessJson(command, streams.terminal));
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, exec);
  AddStreams(request, 3, streams);
  request.Bytes(7, spec.str());
  return Call("Exec", request.str());
}

Status ChurnTask::Kill(int signal) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Int(3, signal);
  return Call("Kill", request.str());
}

Status ChurnTask::Pause() { return Call("Pause", Named()); }

Status ChurnTask::Resume() { return Call("Resume", Named()); }

Status ChurnTask::CloseInput() {
  ProtoWriter request;
  request.Text(1, id_);
  request.Bool(3, true);
  return Call("CloseIO", request.str());
}

Status ChurnTask::BeginWait(const std::string& exec) {
  GANTRY_TRY(waiting_, rpc::BlockingClient::Connect(shim_.socket()));
  GANTRY_TRY(wait_stream_, waiting_->Send(kTaskService, "Wait", Named(exec), e2e::kLong));
  return {};
}

Result<Ended> ChurnTask::Wait() {
  GANTRY_TRY(const std::string answer, waiting_->Receive(wait_stream_, e2e::kLong));
  waiting_.reset();
  return ReadEnded(answer, 1);
}

Result<Ended> ChurnTask::Delete(const std::string& exec) {
  GANTRY_TRY(const std::string answer, Ask("Delete", Named(exec)));
  return ReadEnded(answer, 2);
}

Result<Ended> ChurnTask::ShimDelete() {
  connection_.reset();
  const e2e::Output deleted = shim_.Delete();
  if (deleted.status != 0) {
    return Fail(Code::kUnknown, "delete of the shim: {}", deleted.Text());
  }
  return ReadEnded(deleted.out, 2);
}

}  // namespace gantry::fault
