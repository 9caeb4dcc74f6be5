// SPDX-License-Identifier: Apache-2.0
//
// Each answer in two forms, a table and JSON, with the same values in the same order. JSON has
// plain numbers (bytes, nanoseconds); the tables round them.
#include "core/ctl/show.h"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

#include "core/ctl/output.h"

namespace gantry::ctl {
namespace {

// By namespace, pod, sandbox before its containers, id.
auto Order(const v1::Instance* instance) {
  const bool sandbox = instance->kind() == "sandbox";
  return std::tuple(instance->namespace_(), instance->sandbox_id().empty() && !sandbox,
                    sandbox ? instance->id() : instance->sandbox_id(), !sandbox, instance->id());
}

std::vector<const v1::Instance*> Sorted(const v1::ListResponse& list) {
  std::vector<const v1::Instance*> sorted;
  for (const v1::Instance& instance : list.instances()) {
    sorted.push_back(&instance);
  }
  std::ranges::sort(sorted, {}, Order);
  return sorted;
}

void WriteInstance(JsonWriter& json, const v1::Instance& instance) {
  json.Object()
      .Member("namespace", instance.namespace_())
      .Member("id", instance.id())
      .Member("kind", instance.kind())
      .Member("sandbox_id", instance.sandbox_id())
      .Member("handler", instance.handler())
      .Member("backend", instance.backend())
      .Member("state", instance.state())
      .Member("pid", instance.pid())
      .Member("created_at", TimeText(instance.created_at_ns()))
      .Member("memory_bytes", instance.memory_bytes())
      .Member("execs", instance.execs())
      .Member("engine_cpu_ns", instance.engine_cpu_ns())
      .Member("calls", instance.calls())
      .Member("buffered_bytes", instance.buffered_bytes())
      .Member("unread_bytes", instance.unread_bytes())
      .End();
}

void WriteProcess(JsonWriter& json, const v1::Process& process) {
  json.Object()
      .Member("exec_id", process.exec_id())
      .Member("pid", process.pid())
      .Member("state", process.state())
      .Member("terminal", process.terminal());
  if (process.exited_at_ns() != 0) {
    json.Member("exit_status", process.exit_status())
        .Member("exited_at", TimeText(process.exited_at_ns()));
  }
  json.Member("stdin", process.stdin())
      .Member("stdout", process.stdout())
      .Member("stderr", process.stderr())
      .End();
}

std::string Line(std::string_view name, std::string_view value) {
  return Format("{:<12}{}\n", name, value.empty() ? "-" : value);
}

std::string ProcessTable(const v1::InspectResponse& answer) {
  Table table({"PROCESS", "PID", "STATE", "EXIT", "EXITED", "TTY", "STDOUT"});
  for (const v1::Process& process : answer.processes()) {
    const bool exited = process.exited_at_ns() != 0;
    table.Add({process.exec_id().empty() ? "init" : process.exec_id(), NumberText(process.pid()),
               process.state(), exited ? std::to_string(process.exit_status()) : "",
               TimeText(process.exited_at_ns()), process.terminal() ? "yes" : "no",
               process.stdout()});
  }
  return table.str();
}

}  // namespace

std::string ListTable(const v1::ListResponse& list, int64_t now_ns) {
  Table table({"NAMESPACE", "ID", "KIND", "SANDBOX", "HANDLER", "BACKEND", "STATE", "PID", "MEMORY",
               "EXECS", "AGE"});
  for (const v1::Instance* instance : Sorted(list)) {
    table.Add({instance->namespace_(), instance->id(), instance->kind(), instance->sandbox_id(),
               instance->handler(), instance->backend(), instance->state(),
               NumberText(instance->pid()), BytesText(instance->memory_bytes()),
               std::to_string(instance->execs()), AgeText(instance->created_at_ns(), now_ns)});
  }
  return table.str();
}

std::string CostTable(const v1::ListResponse& list) {
  Table table({"NAMESPACE", "ID", "KIND", "SANDBOX", "STATE", "EXECS", "CALLS", "ENGINE-CPU",
               "BUFFERED", "UNREAD"});
  for (const v1::Instance* instance : Sorted(list)) {
    table.Add({instance->namespace_(), instance->id(), instance->kind(), instance->sandbox_id(),
               instance->state(), std::to_string(instance->execs()), NumberText(instance->calls()),
               CpuText(instance->engine_cpu_ns()), BytesText(instance->buffered_bytes()),
               BytesText(instance->unread_bytes())});
  }
  return table.str();
}

std::string ListJson(const v1::ListResponse& list) {
  JsonWriter json;
  json.Array();
  for (const v1::Instance* instance : Sorted(list)) {
    WriteInstance(json, *instance);
  }
  return json.End().Take();
}

std::string InspectText(const v1::InspectResponse& answer, int64_t now_ns) {
  const v1::Instance& instance = answer.instance();
  std::string out = Line("id", instance.id()) + Line("namespace", instance.namespace_()) +
                    Line("kind", instance.kind()) + Line("sandbox", instance.sandbox_id()) +
                    Line("handler", instance.handler()) + Line("backend", instance.backend()) +
                    Line("state", instance.state()) + Line("pid", NumberText(instance.pid())) +
                    Line("created", TimeText(instance.created_at_ns())) +
                    Line("age", AgeText(instance.created_at_ns(), now_ns)) +
                    Line("memory", BytesText(instance.memory_bytes())) +
                    Line("calls", NumberText(instance.calls())) +
                    Line("engine cpu", CpuText(instance.engine_cpu_ns())) +
                    Line("buffered", BytesText(instance.buffered_bytes())) +
                    Line("unread", BytesText(instance.unread_bytes())) +
                    Line("bundle", answer.bundle()) + Line("address", answer.address()) +
                    Line("options", answer.options_json());
  for (const std::string& cgroup : answer.cgroups()) {
    out += Line("cgroup", cgroup);
  }
  return answer.processes().empty() ? out : out + "\n" + ProcessTable(answer);
}

std::string InspectJson(const v1::InspectResponse& answer) {
  JsonWriter json;
  json.Object().Key("instance");
  WriteInstance(json, answer.instance());
  json.Member("bundle", answer.bundle()).Member("address", answer.address()).Key("options");
  const std::string& options = answer.options_json();
  json.Raw(oci::Json::Parse(options, "options") ? options : "{}");
  json.Key("cgroups").Array();
  for (const std::string& cgroup : answer.cgroups()) {
    json.Value(cgroup);
  }
  json.End().Key("processes").Array();
  for (const v1::Process& process : answer.processes()) {
    WriteProcess(json, process);
  }
  return json.End().End().Take();
}

namespace {

// A table of what backends count, where there is any: a line for each handler.
std::string CountsText(const v1::StatusResponse& status) {
  Table table({"BACKEND", "HANDLER", "COUNTS"});
  bool any = false;
  for (const v1::BackendStatus& backend : status.backends()) {
    std::map<std::string, std::string> by_handler;
    for (const v1::BackendCount& count : backend.counts()) {
      std::string& text = by_handler[count.handler()];
      text += Format("{}{} {}", text.empty() ? "" : ", ", count.name(), count.value());
    }
    for (const auto& [handler, text] : by_handler) {
      table.Add({backend.name(), handler, text});
      any = true;
    }
  }
  return any ? "\n" + table.str() : std::string();
}

// What engines crash of, and what to do about it.
std::string CrashesText(const link::KeeperStatus& keeper) {
  std::string out;
  if (!keeper.fell_back_from.empty()) {
    out += Line("fallback", Format("'{}' {} soon after the upgrade to it; '{}' is in charge again",
                                   keeper.fell_back_from, EndText(keeper.fell_back_wait_status),
                                   keeper.engine_path));
  }
  if (keeper.requests_dropped != 0) {
    out += Line("dropped", Format("{} call(s) that engines crashed of", keeper.requests_dropped));
  }
  for (const link::InstanceAdded& instance : keeper.instances) {
    if (instance.left_out) {
      const link::Announce& announce = instance.announce;
      out += Line("left out", Format("{}/{}: engines crash of it; 'gantryctl delete -n {} {}' ends "
                                     "it, 'gantryctl restart' tries it once more",
                                     announce.ns, announce.id, announce.ns, announce.id));
    }
  }
  return out;
}

}  // namespace

std::string EndText(int wait_status) {
  return WIFEXITED(wait_status) ? Format("exited with {}", WEXITSTATUS(wait_status))
                                : Format("was killed by signal {}", WTERMSIG(wait_status));
}

std::string StatusText(const v1::StatusResponse& status, const link::KeeperStatus& keeper,
                       int64_t now_ns) {
  std::string out =
      Line("version", status.version()) +
      Line("engine",
           Format("pid {}, up {}", status.engine_pid(), AgeText(status.started_at_ns(), now_ns))) +
      Line("keeper", Format("pid {}, up {}, {} engine(s) started, {} hung, upgraded {} time(s)",
                            keeper.keeper_pid, AgeText(keeper.started_at_ns, now_ns),
                            keeper.engine_starts, keeper.engine_hangs, keeper.keeper_upgrades)) +
      Line("sandboxes", std::to_string(status.sandboxes())) +
      Line("containers", std::to_string(status.containers())) +
      Line("connections", std::to_string(keeper.connections)) +
      Line("events", Format("{} waiting", status.queued_events())) +
      Line("workers", Format("{} lost", status.lost_workers())) + CrashesText(keeper) + "\n";
  Table table({"BACKEND", "VERSION", "SANDBOXES", "LOST", "FILE", "ERROR"});
  for (const v1::BackendStatus& backend : status.backends()) {
    table.Add({backend.name(), backend.version(), std::to_string(backend.sandboxes()),
               std::to_string(backend.lost_workers()), backend.path(), backend.error()});
  }
  return out + table.str() + CountsText(status);
}

std::string StatusJson(const v1::StatusResponse& status, const link::KeeperStatus& keeper) {
  JsonWriter json;
  json.Object()
      .Member("version", status.version())
      .Member("engine_pid", status.engine_pid())
      .Member("keeper_pid", keeper.keeper_pid)
      .Member("started_at", TimeText(status.started_at_ns()))
      .Member("engine_starts", keeper.engine_starts)
      .Member("engine_hangs", keeper.engine_hangs)
      .Member("keeper_upgrades", keeper.keeper_upgrades)
      .Member("sandboxes", status.sandboxes())
      .Member("containers", status.containers())
      .Member("connections", keeper.connections)
      .Member("requests_waiting", keeper.requests_waiting)
      .Member("descriptors_stored", keeper.descriptors_stored)
      .Member("queued_events", status.queued_events())
      .Member("lost_workers", status.lost_workers())
      .Member("requests_dropped", keeper.requests_dropped)
      .Member("fell_back_from", keeper.fell_back_from)
      .Key("left_out")
      .Array();
  for (const link::InstanceAdded& instance : keeper.instances) {
    if (instance.left_out) {
      json.Object()
          .Member("namespace", instance.announce.ns)
          .Member("id", instance.announce.id)
          .End();
    }
  }
  json.End().Key("backends").Array();
  for (const v1::BackendStatus& backend : status.backends()) {
    json.Object()
        .Member("name", backend.name())
        .Member("version", backend.version())
        .Member("path", backend.path())
        .Member("sandboxes", backend.sandboxes())
        .Member("lost_workers", backend.lost_workers())
        .Member("error", backend.error())
        .Key("counts")
        .Array();
    for (const v1::BackendCount& count : backend.counts()) {
      json.Object()
          .Member("handler", count.handler())
          .Member("name", count.name())
          .Member("value", count.value())
          .End();
    }
    json.End().End();
  }
  return json.End().End().Take();
}

}  // namespace gantry::ctl
