// SPDX-License-Identifier: Apache-2.0
//
// `process` of config.json. Source: OCI runtime-spec 1.2, config.md.
#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/words.h>

#include "core/toolkit/oci/sections.h"

namespace gantry::oci {
namespace {

// A number of the kernel for a word, by one of the functions of words.h.
template <class T>
Status ReadWord(const Json& word, std::optional<T> (*find)(std::string_view), std::string_view what,
                T& out) {
  std::string name;
  GANTRY_CHECK_OK(word.Read(name));
  const std::optional<T> number = find(name);
  if (!number) {
    return word.WrongValue(Format("not {}", what));
  }
  out = *number;
  return {};
}

Status ReadUser(const Json& user, User& out) {
  GANTRY_CHECK_OK(user.CheckObject());
  GANTRY_CHECK_OK(user["uid"].Read(out.uid));
  GANTRY_CHECK_OK(user["gid"].Read(out.gid));
  GANTRY_CHECK_OK(user["umask"].Read(out.umask));
  return user["additionalGids"].Read(out.additional_gids);
}

Status ReadConsoleSize(const Json& size, ProcessSpec& out) {
  GANTRY_CHECK_OK(size.CheckObject());
  if (size.absent()) {
    return {};
  }
  ConsoleSize console;
  GANTRY_CHECK_OK(size["width"].Read(console.width));
  GANTRY_CHECK_OK(size["height"].Read(console.height));
  out.console_size = console;
  return {};
}

Status ReadCapabilitySet(const Json& list, uint64_t& mask, std::vector<std::string>& unknown) {
  std::vector<std::string> names;
  GANTRY_CHECK_OK(list.Read(names));
  for (std::string& name : names) {
    if (const std::optional<int> number = CapabilityOf(name)) {
      mask |= uint64_t{1} << *number;
    } else if (!std::ranges::contains(unknown, name)) {
      unknown.push_back(std::move(name));
    }
  }
  return {};
}

Status ReadCapabilities(const Json& part, std::optional<Capabilities>& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  if (part.absent()) {
    return {};
  }
  Capabilities sets;
  GANTRY_CHECK_OK(ReadCapabilitySet(part["bounding"], sets.bounding, sets.unknown));
  GANTRY_CHECK_OK(ReadCapabilitySet(part["effective"], sets.effective, sets.unknown));
  GANTRY_CHECK_OK(ReadCapabilitySet(part["inheritable"], sets.inheritable, sets.unknown));
  GANTRY_CHECK_OK(ReadCapabilitySet(part["permitted"], sets.permitted, sets.unknown));
  GANTRY_CHECK_OK(ReadCapabilitySet(part["ambient"], sets.ambient, sets.unknown));
  out = std::move(sets);
  return {};
}

Status ReadRlimits(const Json& list, std::vector<Rlimit>& out) {
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    Rlimit limit;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(ReadWord(item["type"], RlimitOf, "a resource limit", limit.resource));
    GANTRY_CHECK_OK(item["soft"].Read(limit.soft));
    GANTRY_CHECK_OK(item["hard"].Read(limit.hard));
    if (limit.soft > limit.hard) {
      return item.WrongValue("soft above hard");
    }
    if (std::ranges::contains(out, limit.resource, &Rlimit::resource)) {
      return item["type"].WrongValue("listed twice");
    }
    out.push_back(limit);
  }
  return {};
}

Status ReadScheduler(const Json& part, std::optional<Scheduler>& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  if (part.absent()) {
    return {};
  }
  Scheduler scheduler;
  GANTRY_CHECK_OK(
      ReadWord(part["policy"], SchedulerPolicyOf, "a scheduling policy", scheduler.policy));
  GANTRY_CHECK_OK(part["nice"].Read(scheduler.nice));
  if (scheduler.nice < -20 || scheduler.nice > 19) {
    return part["nice"].WrongValue("not between -20 and 19");
  }
  int32_t priority = 0;
  GANTRY_CHECK_OK(part["priority"].Read(priority));
  if (priority < 0 || priority > 99) {
    return part["priority"].WrongValue("not between 0 and 99");
  }
  scheduler.priority = static_cast<uint32_t>(priority);
  GANTRY_TRY(const auto flags, part["flags"].Items());
  for (const Json& flag : flags) {
    uint64_t bit = 0;
    GANTRY_CHECK_OK(ReadWord(flag, SchedulerFlagOf, "a flag of a scheduler", bit));
    scheduler.flags |= bit;
  }
  GANTRY_CHECK_OK(part["runtime"].Read(scheduler.runtime));
  GANTRY_CHECK_OK(part["deadline"].Read(scheduler.deadline));
  GANTRY_CHECK_OK(part["period"].Read(scheduler.period));
  out = scheduler;
  return {};
}

Status ReadIoPriority(const Json& part, std::optional<IoPriority>& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  if (part.absent()) {
    return {};
  }
  IoPriority priority;
  GANTRY_CHECK_OK(ReadWord(part["class"], IoClassOf, "a class of IO", priority.io_class));
  GANTRY_CHECK_OK(part["priority"].Read(priority.priority));
  if (priority.priority < 0 || priority.priority > 7) {
    return part["priority"].WrongValue("not between 0 and 7");
  }
  out = priority;
  return {};
}

Status ReadOomScore(const Json& score, std::optional<int>& out) {
  GANTRY_CHECK_OK(score.Read(out));
  if (out && (*out < -1000 || *out > 1000)) {
    return score.WrongValue("not between -1000 and 1000");
  }
  return {};
}

Status ReadWhatItMay(const Json& process, ProcessSpec& out) {
  GANTRY_CHECK_OK(ReadCapabilities(process["capabilities"], out.capabilities));
  GANTRY_CHECK_OK(process["noNewPrivileges"].Read(out.no_new_privileges));
  GANTRY_CHECK_OK(process["apparmorProfile"].Read(out.apparmor_profile));
  return process["selinuxLabel"].Read(out.selinux_label);
}

Status ReadWhatItTakes(const Json& process, ProcessSpec& out) {
  GANTRY_CHECK_OK(ReadRlimits(process["rlimits"], out.rlimits));
  GANTRY_CHECK_OK(ReadOomScore(process["oomScoreAdj"], out.oom_score_adj));
  GANTRY_CHECK_OK(ReadScheduler(process["scheduler"], out.scheduler));
  GANTRY_CHECK_OK(ReadIoPriority(process["ioPriority"], out.io_priority));
  const Json affinity = process["execCPUAffinity"];
  GANTRY_CHECK_OK(affinity.CheckObject());
  GANTRY_CHECK_OK(affinity["initial"].Read(out.initial_cpu_affinity));
  return affinity["final"].Read(out.final_cpu_affinity);
}

}  // namespace

Result<ProcessSpec> ReadProcess(const Json& process) {
  ProcessSpec out;
  if (process.absent()) {
    return process.Wrong("missing");
  }
  GANTRY_CHECK_OK(process.CheckObject());
  GANTRY_CHECK_OK(process["terminal"].Read(out.terminal));
  GANTRY_CHECK_OK(ReadConsoleSize(process["consoleSize"], out));
  GANTRY_CHECK_OK(ReadUser(process["user"], out.user));
  GANTRY_CHECK_OK(process["args"].Read(out.args));
  if (out.args.empty() || out.args.front().empty()) {
    return process["args"].Wrong("no program to run");
  }
  GANTRY_CHECK_OK(process["env"].Read(out.env));
  GANTRY_CHECK_OK(process["cwd"].Read(out.cwd));
  if (!out.cwd.starts_with('/')) {
    return process["cwd"].WrongValue("not an absolute path");
  }
  GANTRY_CHECK_OK(ReadWhatItMay(process, out));
  GANTRY_CHECK_OK(ReadWhatItTakes(process, out));
  return out;
}

}  // namespace gantry::oci
