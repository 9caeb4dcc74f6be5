// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/container_manager.h"

#include <array>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/number.h>

#include "plugins/gvisor/checkpoint/image.h"

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

/// "containerManager" is how Go's registry calls the type.
constexpr std::string_view kWait = "containerManager.Wait";
/// Some 130 bytes and a dozen values a process: room for 32,000, as many as a pod of Kubernetes'
/// may have where nobody has set another limit.
constexpr size_t kMaxProcessesBytes = size_t{4} << 20;
constexpr size_t kMaxProcessesValues = 500'000;

std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Foreign JSON: a number where there is one, else what stands for none.
uint64_t NumberIn(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

const Json& MemberOf(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

std::unexpected<urpc::Failure> NotUnderstood(std::string_view method) {
  return std::unexpected(urpc::Failure{urpc::Cause::kProtocol, Code::kInternal, std::string(method),
                                       "the sentry's result is not as expected", 0});
}

Json ToJson(const oci::Capabilities& all) {
  return {{"PermittedCaps", all.permitted},
          {"InheritableCaps", all.inheritable},
          {"EffectiveCaps", all.effective},
          {"BoundingCaps", all.bounding},
          {"AmbientCaps", all.ambient}};
}

Json ToJson(const ExecArgs& args) {
  return {{"filename", ""},
          {"argv", args.argv},
          {"envv", args.env},
          {"wd", args.cwd},
          {"KUID", args.uid},
          {"KGID", args.gid},
          {"ExtraKGIDs", args.additional_gids},
          {"Capabilities", args.capabilities ? ToJson(*args.capabilities) : Json()},
          {"NoNewPrivileges", args.no_new_privileges},
          {"StdioIsPty", args.terminal},
          {"GuestFDs", args.guest_fds},
          {"ContainerID", args.container}};
}

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

uint64_t SumOf(const Json& numbers) {
  uint64_t sum = 0;
  for (const Json& one : numbers) {
    sum += one.is_number_unsigned() ? one.get<uint64_t>() : 0;
  }
  return sum;
}

/// Those of cgroups v1 and v2.
constexpr std::array<std::pair<const char*, const char*>, 2> kCpuFiles = {
    {{"cpuacct", "cpuacct.usage"}, {"cpu", "cpu.stat"}}};

constexpr std::array<std::pair<const char*, const char*>, 2> kMemoryFiles = {
    {{"memory", "memory.usage_in_bytes"}, {"memory", "memory.current"}}};
constexpr std::pair<const char*, const char*> kTasksFile = {"pids", "pids.current"};

Json ControlFile(const std::pair<const char*, const char*>& file, const std::string& path) {
  return {{"file", {{"controller", file.first}, {"path", path}, {"name", file.second}}}};
}

/// What was read from one of them; none: it was not there.
std::optional<std::string_view> TextIn(const Json& result) {
  const Json& failed = MemberOf(result, "is_error");
  const Json& value = MemberOf(result, "value");
  if (!failed.is_boolean() || failed.get<bool>() || !value.is_string()) {
    return std::nullopt;
  }
  return value.get_ref<const std::string&>();
}

std::optional<uint64_t> CountIn(std::string_view text) {
  const auto number = ParseNumber(text.substr(0, text.find('\n')));
  return number && *number >= 0 ? std::optional<uint64_t>(*number) : std::nullopt;
}

std::optional<uint64_t> CountIn(const Json& result) {
  const auto text = TextIn(result);
  return text ? CountIn(*text) : std::nullopt;
}

/// Nanoseconds.
std::optional<uint64_t> CpuTimeIn(const Json& result) {
  constexpr std::string_view kInMicroseconds = "usage_usec ";
  auto text = TextIn(result);
  if (!text) {
    return std::nullopt;
  }
  const bool is_v2 = text->starts_with(kInMicroseconds);
  if (is_v2) {
    text->remove_prefix(kInMicroseconds.size());
  }
  const auto number = CountIn(*text);
  return number ? std::optional(*number * (is_v2 ? 1000 : 1)) : std::nullopt;
}

constexpr std::string_view kReadFiles = "Cgroups.ReadControlFiles";

/// One result for each file.
Outcome<Json> ReadControlFiles(urpc::Client& client, const Json& files, Deadline deadline) {
  const std::string arg = TextOf({{"Args", files}});
  GANTRY_TRY(const urpc::Answer answer,
             client.Call({.method = kReadFiles, .arg = arg, .fds = {}}, deadline));
  Json parsed = ReadJson(answer.result);
  const auto results = parsed.is_object() ? parsed.find("results") : parsed.end();
  if (results == parsed.end() || !results->is_array() || results->size() != files.size()) {
    return NotUnderstood(kReadFiles);
  }
  return std::move(*results);
}

std::unexpected<urpc::Failure> NoCgroup(std::string_view what) {
  return std::unexpected(urpc::Failure{urpc::Cause::kRefused, Code::kNotFound,
                                       std::string(kReadFiles),
                                       Format("it has no cgroup that counts {}", what), 0});
}

}  // namespace

uint32_t WaitWord::status() const {
  constexpr uint32_t kSignalMask = 0x7f;
  const uint32_t signal = raw & kSignalMask;
  return signal != 0 ? 128 + signal : (raw >> 8) & 0xff;
}

std::string MountConf::Text() const {
  constexpr std::array<const char*, 3> kLower = {"none", "lisafs", "erofs"};
  constexpr std::array<const char*, 4> kUpper = {"none", "memory", "self", "anon"};
  return Format("{}:{}", kLower.at(static_cast<size_t>(lower)),
                kUpper.at(static_cast<size_t>(upper)));
}

std::string StartRootArg(const std::string& id) { return Quoted(id); }

std::string CheckpointArg(const std::string& build) {
  return TextOf({{"metadata", {{"compression", "none"}, {kBuildKey, build}}},
                 {"have_pages_file", true},
                 {"Resume", true}});
}

std::string StartSubcontainerArg(const Subcontainer& container) {
  Json mounts = Json::array();
  for (const MountConf& one : container.mounts) {
    mounts.push_back(
        {{"upper", static_cast<int>(one.upper)}, {"lower", static_cast<int>(one.lower)}});
  }
  return Format(
      R"({{"Spec":{},"Conf":{},"CID":{},"NumGoferFilestoreFDs":{},"IsDevIoFilePresent":false,)"
      R"("IsRootfsUpperTarFilePresent":false,"GoferMountConfs":{}}})",
      container.spec_json, container.conf_json, Quoted(container.id), container.filestores,
      TextOf(mounts));
}

std::string ExecuteArg(const ExecArgs& args) { return TextOf(ToJson(args)); }

Outcome<int32_t> ReadPid(const urpc::Answer& answer) {
  const Json pid = ReadJson(answer.result);
  if (!pid.is_number_integer()) {
    return NotUnderstood(kExecuteAsync);
  }
  return pid.get<int32_t>();
}

Outcome<urpc::Answer> ContainerManager::Call(std::string_view method, std::string_view arg,
                                             Deadline deadline, std::span<const int> fds) {
  return client_.Call({.method = method, .arg = arg, .fds = fds}, deadline);
}

Outcome<void> ContainerManager::Order(std::string_view method, std::string_view arg,
                                      Deadline deadline, std::span<const int> fds) {
  GANTRY_TRY([[maybe_unused]] const urpc::Answer done, Call(method, arg, deadline, fds));
  return {};
}

std::string WaitPidArg(const std::string& id, int32_t pid) {
  return TextOf({{"PID", pid}, {"CID", id}});
}

Outcome<void> ContainerManager::CreateSubcontainer(const std::string& id, const UniqueFd* terminal,
                                                   Deadline deadline) {
  const int replica = terminal == nullptr ? -1 : terminal->get();
  return Order("containerManager.CreateSubcontainer", TextOf({{"CID", id}}), deadline,
               std::span(&replica, terminal == nullptr ? 0 : 1));
}

Outcome<void> ContainerManager::DestroySubcontainer(const std::string& id, Deadline deadline) {
  return Order("containerManager.DestroySubcontainer", Quoted(id), deadline);
}

Outcome<void> ContainerManager::SendWait(urpc::Connection& connection, const std::string& id,
                                         Deadline deadline) {
  const std::string arg = Quoted(id);
  return connection.Send({.method = kWait, .arg = arg}, deadline);
}

Outcome<WaitWord> ContainerManager::PeekWait(urpc::Connection& connection, Deadline deadline) {
  GANTRY_TRY(const urpc::Answer answer, connection.Peek(kWait, deadline));
  const Json word = ReadJson(answer.result);
  if (!word.is_number_unsigned()) {
    return NotUnderstood(kWait);
  }
  return WaitWord{word.get<uint32_t>()};
}

std::string SignalArg(const SignalTarget& target, uint32_t signal) {
  return TextOf({{"CID", target.container},
                 {"Signo", signal},
                 {"PID", target.pid},
                 {"Mode", static_cast<int>(target.mode)}});
}

Outcome<void> ContainerManager::Signal(const SignalTarget& target, uint32_t signal,
                                       Deadline deadline) {
  return Order(kSignal, SignalArg(target, signal), deadline);
}

Outcome<std::vector<ProcessLine>> ContainerManager::Processes(const std::string& id,
                                                              Deadline deadline) {
  constexpr std::string_view kMethod = "containerManager.Processes";
  const std::string arg = Quoted(id);
  GANTRY_TRY(
      const urpc::Answer answer,
      client_.Call({.method = kMethod, .arg = arg, .max_answer = kMaxProcessesBytes}, deadline));
  const Json all = ReadJson(answer.result, {.values = kMaxProcessesValues});
  std::vector<ProcessLine> lines;
  // Null: it has none.
  if (!all.is_array()) {
    return all.is_null() ? Outcome<std::vector<ProcessLine>>(lines) : NotUnderstood(kMethod);
  }
  for (const Json& one : all) {
    const Json& command = MemberOf(one, "cmd");
    lines.push_back({static_cast<uint32_t>(NumberIn(one, "pid")),
                     static_cast<uint32_t>(NumberIn(one, "ppid")),
                     static_cast<uint32_t>(NumberIn(one, "uid")),
                     command.is_string() ? command.get<std::string>() : ""});
  }
  return lines;
}

Outcome<Usage> ContainerManager::Event(const std::string& id, Deadline deadline) {
  constexpr std::string_view kMethod = "containerManager.Event";
  GANTRY_TRY(const urpc::Answer answer, Call(kMethod, Quoted(id), deadline));
  const Json event = ReadJson(answer.result);
  const Json& data = MemberOf(MemberOf(event, "event"), "data");
  const Json& memory = MemberOf(MemberOf(data, "memory"), "usage");
  const Json& processes = MemberOf(data, "pids");
  if (!memory.is_object() || !processes.is_object()) {
    return NotUnderstood(kMethod);
  }
  Usage usage;
  usage.memory_bytes = NumberIn(memory, "usage");
  usage.processes = NumberIn(processes, "current");
  // A newer one has the times of all containers beside it, an older one this container's inside.
  const Json& by_container = MemberOf(event, "containerUsage");
  const Json& inside = MemberOf(MemberOf(data, "cpu"), "usage");
  if (by_container.is_object() && by_container.contains(id)) {
    usage.cpu = {.own_ns = NumberIn(by_container, id.c_str()), .all_ns = SumOf(by_container)};
  } else if (inside.is_object() && inside.contains("total")) {
    const uint64_t own = NumberIn(inside, "total");
    usage.cpu = {.own_ns = own, .all_ns = own};
  }
  return usage;
}

Outcome<CpuTimes> ContainerManager::ReadCpuTimes(const std::string& id, Deadline deadline) {
  Json files = Json::array();
  for (const auto& file : kCpuFiles) {
    files.push_back(ControlFile(file, "/"));
    files.push_back(ControlFile(file, "/" + id));
  }
  GANTRY_TRY(const Json results, ReadControlFiles(client_, files, deadline));
  for (size_t i = 0; i < results.size(); i += 2) {
    const auto all = CpuTimeIn(results[i]);
    const auto own = CpuTimeIn(results[i + 1]);
    if (all && own) {
      return CpuTimes{.own_ns = *own, .all_ns = *all};
    }
  }
  return NoCgroup("time");
}

Outcome<Usage> ContainerManager::ReadUsage(const std::string& id, Deadline deadline) {
  Json files = Json::array({ControlFile(kTasksFile, "/" + id)});
  for (const auto& file : kMemoryFiles) {
    files.push_back(ControlFile(file, "/" + id));
  }
  GANTRY_TRY(const Json results, ReadControlFiles(client_, files, deadline));
  const auto processes = CountIn(results[0]);
  const auto v1 = CountIn(results[1]);
  const auto memory = v1 ? v1 : CountIn(results[2]);
  if (!processes || !memory) {
    return NoCgroup("memory and processes");
  }
  return Usage{.memory_bytes = *memory, .processes = *processes, .cpu = std::nullopt};
}

Outcome<RuntimeState> ContainerManager::State(const std::string& id, Deadline deadline) {
  constexpr std::string_view kMethod = "containerManager.ContainerRuntimeState";
  GANTRY_TRY(const urpc::Answer answer, Call(kMethod, Quoted(id), deadline));
  const Json state = ReadJson(answer.result);
  if (!state.is_number_unsigned() || state.get<uint64_t>() > 3) {
    return NotUnderstood(kMethod);
  }
  return static_cast<RuntimeState>(state.get<int>());
}

Outcome<void> ContainerManager::SetNetworkArgs(const std::string& args,
                                               std::span<const int> sockets, Deadline deadline) {
  return Order("containerManager.SetNetworkArgs", args, deadline, sockets);
}

}  // namespace gantry::gvisor
