// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <gantry/toolkit/oci/words.h>

namespace gantry::oci {
namespace {

template <class T>
using Word = std::pair<std::string_view, T>;

template <class T, size_t N>
std::optional<T> Find(const Word<T> (&table)[N], std::string_view name) {
  const auto found = std::ranges::find(table, name, &Word<T>::first);
  return found == std::end(table) ? std::nullopt : std::optional(found->second);
}

// In the order of their numbers. Source: capabilities(7), linux/capability.h.
constexpr std::string_view kCapabilities[] = {"CAP_CHOWN",
                                              "CAP_DAC_OVERRIDE",
                                              "CAP_DAC_READ_SEARCH",
                                              "CAP_FOWNER",
                                              "CAP_FSETID",
                                              "CAP_KILL",
                                              "CAP_SETGID",
                                              "CAP_SETUID",
                                              "CAP_SETPCAP",
                                              "CAP_LINUX_IMMUTABLE",
                                              "CAP_NET_BIND_SERVICE",
                                              "CAP_NET_BROADCAST",
                                              "CAP_NET_ADMIN",
                                              "CAP_NET_RAW",
                                              "CAP_IPC_LOCK",
                                              "CAP_IPC_OWNER",
                                              "CAP_SYS_MODULE",
                                              "CAP_SYS_RAWIO",
                                              "CAP_SYS_CHROOT",
                                              "CAP_SYS_PTRACE",
                                              "CAP_SYS_PACCT",
                                              "CAP_SYS_ADMIN",
                                              "CAP_SYS_BOOT",
                                              "CAP_SYS_NICE",
                                              "CAP_SYS_RESOURCE",
                                              "CAP_SYS_TIME",
                                              "CAP_SYS_TTY_CONFIG",
                                              "CAP_MKNOD",
                                              "CAP_LEASE",
                                              "CAP_AUDIT_WRITE",
                                              "CAP_AUDIT_CONTROL",
                                              "CAP_SETFCAP",
                                              "CAP_MAC_OVERRIDE",
                                              "CAP_MAC_ADMIN",
                                              "CAP_SYSLOG",
                                              "CAP_WAKE_ALARM",
                                              "CAP_BLOCK_SUSPEND",
                                              "CAP_AUDIT_READ",
                                              "CAP_PERFMON",
                                              "CAP_BPF",
                                              "CAP_CHECKPOINT_RESTORE"};
static_assert(std::size(kCapabilities) == CAP_CHECKPOINT_RESTORE + 1);

constexpr Word<int> kRlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS},
    {"RLIMIT_CORE", RLIMIT_CORE},
    {"RLIMIT_CPU", RLIMIT_CPU},
    {"RLIMIT_DATA", RLIMIT_DATA},
    {"RLIMIT_FSIZE", RLIMIT_FSIZE},
    {"RLIMIT_LOCKS", RLIMIT_LOCKS},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
    {"RLIMIT_NICE", RLIMIT_NICE},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE},
    {"RLIMIT_NPROC", RLIMIT_NPROC},
    {"RLIMIT_RSS", RLIMIT_RSS},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
    {"RLIMIT_RTTIME", RLIMIT_RTTIME},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
    {"RLIMIT_STACK", RLIMIT_STACK},
};

// Source: sched(7); SCHED_ISO is reserved and in no kernel.
constexpr Word<uint32_t> kPolicies[] = {
    {"SCHED_OTHER", SCHED_NORMAL},     {"SCHED_FIFO", SCHED_FIFO}, {"SCHED_RR", SCHED_RR},
    {"SCHED_BATCH", SCHED_BATCH},      {"SCHED_ISO", 4},           {"SCHED_IDLE", SCHED_IDLE},
    {"SCHED_DEADLINE", SCHED_DEADLINE}};

constexpr Word<uint64_t> kSchedulerFlags[] = {
    {"SCHED_FLAG_RESET_ON_FORK", SCHED_FLAG_RESET_ON_FORK},
    {"SCHED_FLAG_RECLAIM", SCHED_FLAG_RECLAIM},
    {"SCHED_FLAG_DL_OVERRUN", SCHED_FLAG_DL_OVERRUN},
    {"SCHED_FLAG_KEEP_POLICY", SCHED_FLAG_KEEP_POLICY},
    {"SCHED_FLAG_KEEP_PARAMS", SCHED_FLAG_KEEP_PARAMS},
    {"SCHED_FLAG_UTIL_CLAMP_MIN", SCHED_FLAG_UTIL_CLAMP_MIN},
    {"SCHED_FLAG_UTIL_CLAMP_MAX", SCHED_FLAG_UTIL_CLAMP_MAX}};

constexpr Word<int> kIoClasses[] = {{"IOPRIO_CLASS_RT", IOPRIO_CLASS_RT},
                                    {"IOPRIO_CLASS_BE", IOPRIO_CLASS_BE},
                                    {"IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE}};

}  // namespace

std::optional<int> CapabilityOf(std::string_view name) {
  const auto found = std::ranges::find(kCapabilities, name);
  return found == std::end(kCapabilities)
             ? std::nullopt
             : std::optional(static_cast<int>(found - std::begin(kCapabilities)));
}

std::optional<int> RlimitOf(std::string_view name) { return Find(kRlimits, name); }

std::optional<uint32_t> SchedulerPolicyOf(std::string_view name) { return Find(kPolicies, name); }

std::optional<uint64_t> SchedulerFlagOf(std::string_view name) {
  return Find(kSchedulerFlags, name);
}

std::optional<int> IoClassOf(std::string_view name) { return Find(kIoClasses, name); }

}  // namespace gantry::oci
