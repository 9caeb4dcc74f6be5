// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/dump_state.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/ctl/output.h"
#include "core/store/record.h"

namespace gantry::ctl {
namespace {

constexpr size_t kMostProcFile = size_t{1} << 20;
constexpr size_t kMostThreads = 1024;
constexpr size_t kMostDescriptors = 20'000;
constexpr size_t kMostBundles = 5000;

/// gantry's own, as the kernel calls them; what they start in sandboxes is the tenants'.
constexpr std::array<std::string_view, 4> kPrograms = {"gantryd", "gantry-keeper", "gantry-grpc",
                                                       "containerd-shim-gantry"};

bool IsNumber(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> Numbers(const std::string& dir) {
  auto names = ListDirectory(dir);
  std::vector<std::string> numbers = names ? std::move(*names) : std::vector<std::string>();
  std::erase_if(numbers, [](const std::string& name) { return !IsNumber(name); });
  std::ranges::sort(numbers, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return numbers;
}

/// Under its name, or why it cannot be read.
std::string FileText(const std::string& path) {
  auto text = ReadFile(path, kMostProcFile);
  std::string shown = text ? std::move(*text) : "(" + text.error().message + ")";
  std::ranges::replace(shown, '\0', ' ');
  return Format("== {}\n{}{}", path, shown, shown.ends_with('\n') ? "" : "\n");
}

std::string ThreadsText(const std::string& process) {
  std::string text;
  std::vector<std::string> threads = Numbers(process + "/task");
  threads.resize(std::min(threads.size(), kMostThreads));
  for (const std::string& thread : threads) {
    const std::string dir = Format("{}/task/{}", process, thread);
    text += FileText(dir + "/stat") + FileText(dir + "/wchan") + FileText(dir + "/syscall") +
            FileText(dir + "/stack");
  }
  return text;
}

std::string DescriptorsText(const std::string& process) {
  std::string text = Format("== {}/fd\n", process);
  std::vector<std::string> numbers = Numbers(process + "/fd");
  if (numbers.size() > kMostDescriptors) {
    text += Format("{} in all, the first:\n", numbers.size());
    numbers.resize(kMostDescriptors);
  }
  for (const std::string& number : numbers) {
    const auto target = ReadLink(Format("{}/fd/{}", process, number));
    text += Format("{} -> {}\n", number, target ? *target : "?");
  }
  return text;
}

/// It may be a part of the path of a program that has been replaced: "/.../gantryd (deleted)".
bool IsOwn(const std::string& process) {
  const auto program = ReadLink(process + "/exe");
  if (!program) {
    return false;
  }
  const std::string_view name = std::string_view(*program).substr(program->rfind('/') + 1);
  return std::ranges::any_of(kPrograms,
                             [&](std::string_view own) { return name.starts_with(own); });
}

std::string WithoutQuery(const std::string& uri) { return uri.substr(0, uri.find('?')); }

void WriteProcess(JsonWriter& json, std::string_view name, store::State state,
                  const store::ProcessRecord& process) {
  json.Key(name)
      .Object()
      .Member("state", store::StateName(state))
      .Member("pid", process.pid.value)
      .Member("start_time", process.start_time)
      .Member("shown_pid", process.shown_pid.value)
      .Member("exited", process.exited)
      .Member("exit_status", process.exit_status)
      .Member("exited_at", TimeText(process.exited_at_ns))
      .Member("unpublished", process.unpublished)
      .Member("saved_bytes", process.saved.size())
      .End();
}

void WriteStrings(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.Key(name).Array();
  for (const std::string& text : texts) {
    json.Value(text);
  }
  json.End();
}

}  // namespace

std::string NodeText() {
  utsname name{};
  uname(&name);
  std::string text =
      Format("{} {} {} {}\n", name.sysname, name.release, name.version, name.machine);
  for (const std::string file :
       {"/etc/os-release", "/proc/loadavg", "/proc/uptime", "/proc/meminfo", "/proc/pressure/cpu",
        "/proc/pressure/memory", "/proc/pressure/io"}) {
    text += FileText(file);
  }
  return text;
}

std::string ProcessesText() {
  std::string text;
  for (const std::string& pid : Numbers("/proc")) {
    const std::string process = "/proc/" + pid;
    if (!IsOwn(process)) {
      continue;
    }
    for (const std::string file : {"/cmdline", "/stat", "/status", "/limits", "/cgroup", "/io"}) {
      text += FileText(process + file);
    }
    text += ThreadsText(process) + DescriptorsText(process);
  }
  return text.empty() ? "none of gantry's programs runs\n" : text;
}

std::vector<std::string> BundlesOf(const link::KeeperStatus* keeper,
                                   const std::vector<std::string>& containerd_state_dirs) {
  std::vector<std::string> bundles;
  if (keeper != nullptr) {
    for (const link::InstanceAdded& instance : keeper->instances) {
      bundles.push_back(instance.announce.bundle);
    }
  } else {
    for (const std::string& state : containerd_state_dirs) {
      const std::string tasks = state + "/io.containerd.runtime.v2.task";
      const auto namespaces = ListDirectory(tasks);
      for (const std::string& ns : namespaces ? *namespaces : std::vector<std::string>()) {
        const auto ids = ListDirectory(Format("{}/{}", tasks, ns));
        for (const std::string& id : ids ? *ids : std::vector<std::string>()) {
          bundles.push_back(Format("{}/{}/{}", tasks, ns, id));
        }
      }
    }
    std::erase_if(bundles,
                  [](const std::string& bundle) { return !Exists(store::PathOf(bundle)); });
  }
  std::ranges::sort(bundles);
  bundles.erase(std::ranges::unique(bundles).begin(), bundles.end());
  bundles.resize(std::min(bundles.size(), kMostBundles));
  return bundles;
}

Result<std::string> RecordText(const std::string& bundle) {
  GANTRY_TRY(const store::Record record, store::Read(bundle));
  JsonWriter json;
  json.Object()
      .Member("kind",
              std::string_view(record.kind == store::Kind::kSandbox ? "sandbox" : "container"))
      .Member("namespace", record.ns.str())
      .Member("id", record.id)
      .Member("sandbox_id", record.sandbox_id)
      .Member("bundle", record.bundle)
      .Member("handler", record.handler)
      .Member("backend", record.backend)
      .Member("state", store::StateName(record.state))
      .Member("created_at", TimeText(record.created_at_ns))
      .Member("rootfs", record.rootfs)
      .Member("netns_path", record.netns_path)
      .Member("private_pids", record.private_pids)
      .Member("checkpoint", record.checkpoint)
      .Member("terminal", record.stdio.terminal)
      .Member("stdin", WithoutQuery(record.stdio.in))
      .Member("stdout", WithoutQuery(record.stdio.out))
      .Member("stderr", WithoutQuery(record.stdio.err));
  WriteProcess(json, "init", record.state, record.init);
  json.Key("execs").Array();
  for (const store::ExecRecord& exec : record.execs) {
    json.Object().Member("id", exec.id.str());
    WriteProcess(json, "process", exec.state, exec.process);
    json.End();
  }
  json.End().Key("mounts").Array();
  for (const store::MountedRecord& mount : record.mounts) {
    json.Object().Member("type", mount.type).Member("target", mount.target).End();
  }
  json.End();
  WriteStrings(json, "cgroups", record.cgroups);
  WriteStrings(json, "state_dirs", record.state_dirs);
  json.Key("blob_bytes").Object();
  for (const auto& [name, blob] : record.blobs) {
    json.Member(name, blob.size());
  }
  json.End().Key("annotations").Array();
  for (const auto& [name, value] : record.annotations) {
    json.Value(name);
  }
  return json.End().End().Take();
}

}  // namespace gantry::ctl
