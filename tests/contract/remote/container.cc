// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/container.h"

#include <csignal>
#include <utility>

namespace gantry::remote {
namespace {

/// What the sandbox cannot give is not left out in silence.
Status CheckProcess(const std::string& process_json) {
  const Json process = Json::parse(process_json, nullptr, false);
  if (process.is_object() && process.contains("capabilities")) {
    return Fail(Code::kUnimplemented, "'process.capabilities': not in this sandbox");
  }
  return {};
}

Status CheckSpec(const std::string& spec_json) {
  const Json spec = Json::parse(spec_json, nullptr, false);
  if (!spec.is_object()) {
    return {};  // The sandbox says so.
  }
  GANTRY_CHECK_OK(CheckProcess(spec.value("process", Json::object()).dump()));
  const Json linux_part = spec.value("linux", Json::object());
  for (const char* key : {"seccomp", "maskedPaths", "readonlyPaths"}) {
    if (linux_part.contains(key)) {
      return Fail(Code::kUnimplemented, "'linux.{}': not in this sandbox", key);
    }
  }
  for (const char* key : {"pids", "devices"}) {
    if (linux_part.value("resources", Json::object()).contains(key)) {
      return Fail(Code::kUnimplemented, "'linux.resources.{}': not in this sandbox", key);
    }
  }
  return {};
}

}  // namespace

Status RemoteExec::Start() {
  Json call = process_.Call("exec");
  call["process"] = request_.process_json;
  return process_.Make(call, request_.terminal);
}

Status RemoteContainer::Create(const ContainerRequest& request) {
  if (!parts_->unconfined) {
    GANTRY_CHECK_OK(CheckSpec(request.spec_json));
  }
  GANTRY_TRY(const InsideHooks inside, context_.BeginHooks());
  if (inside.create_container || inside.start_container) {
    return Fail(Code::kUnimplemented, "'hooks': none inside this sandbox");
  }
  Json call = init_.Call("create");
  call["spec"] = request.spec_json;
  call["rootfs"] = request.rootfs;
  call["terminal"] = request.terminal;
  Status made = init_.Make(call, request.terminal);
  if (made) {
    made = RunHooks(HookPoint::kCreate);
  }
  if (!made) {
    IgnoreError(Delete(), "the first error counts");
  }
  return made;
}

Status RemoteContainer::RunHooks(HookPoint point) {
  return context_.RunHooks(point, parts_->server ? parts_->server->pid() : HostPid());
}

Status RemoteContainer::Recover(const ContainerRequest& request) {
  Status recovered = init_.Recover(request.init_saved);
  if (!recovered && recovered.error().code == Code::kAborted) {
    GANTRY_CHECK_OK(context_.RunHooks(HookPoint::kDelete, {}));
  }
  return recovered;
}

Status RemoteContainer::Start() {
  GANTRY_CHECK_OK(Do("start"));
  Status ran = RunHooks(HookPoint::kStart);
  if (!ran) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
  }
  return ran;
}

Status RemoteContainer::Delete() {
  GANTRY_CHECK_OK(init_.Delete());
  return context_.RunHooks(HookPoint::kDelete, {});
}

Result<bool> RemoteContainer::HasStarted() {
  GANTRY_TRY(const Message answer, init_.Ask(init_.Call("state")));
  return answer.body.value("state", std::string()) != "created";
}

Status RemoteContainer::Do(const char* what) {
  GANTRY_CHECK_OK(init_.Ask(init_.Call(what)));
  return {};
}

Status RemoteContainer::KillAll(uint32_t signal) {
  Json call = init_.Call("kill");
  call["signal"] = signal;
  call["all"] = true;
  const Result<Message> done = init_.Ask(call);
  const bool gone = !done && done.error().code == Code::kUnavailable;
  return done || gone ? Status() : std::unexpected(done.error());
}

Status RemoteContainer::Update(const std::string& resources_json) {
  Json call = init_.Call("update");
  call["resources"] = Json::parse(resources_json, nullptr, false);
  GANTRY_CHECK_OK(init_.Ask(call));
  return {};
}

Result<ContainerMetrics> RemoteContainer::Stats() {
  GANTRY_TRY(const Message answer, init_.Ask(init_.Call("stats")));
  ContainerMetrics metrics;
  metrics.cpu.usage_ns = answer.body.value("cpu_ns", uint64_t{0});
  metrics.memory.usage_bytes = answer.body.value("memory", uint64_t{0});
  const uint64_t limit = answer.body.value("memory_limit", uint64_t{0});
  metrics.memory.limit_bytes = limit == 0 ? UINT64_MAX : limit;
  metrics.pids.current = answer.body.value("processes", uint64_t{0});
  return metrics;
}

Result<std::vector<ProcessInfo>> RemoteContainer::Processes() {
  GANTRY_TRY(const Message answer, init_.Ask(init_.Call("processes")));
  std::vector<ProcessInfo> processes;
  for (const Json& one : answer.body.value("processes", Json::array())) {
    ProcessInfo info;
    info.pid = one.value("number", 0U);
    if (Result<ExecId> exec = ExecId::Parse(one.value("exec", std::string()))) {
      info.exec = std::move(*exec);
    }
    processes.push_back(std::move(info));
  }
  return processes;
}

Result<std::unique_ptr<Process>> RemoteContainer::Exec(const ExecRequest& request,
                                                       ProcessContext& context) {
  if (!parts_->unconfined) {
    GANTRY_CHECK_OK(CheckProcess(request.process_json));
  }
  return std::make_unique<RemoteExec>(request, context, parts_);
}

Result<std::unique_ptr<Process>> RemoteContainer::RecoverExec(const ExecRequest& request,
                                                              ProcessContext& context,
                                                              bool started) {
  auto exec = std::make_unique<RemoteExec>(request, context, parts_);
  if (started) {
    GANTRY_CHECK_OK(exec->Recover());
  }
  return exec;
}

}  // namespace gantry::remote
