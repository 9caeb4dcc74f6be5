// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/seccomp.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <memory>
#include <utility>

#include <gantry/format.h>

namespace gantry::container {
namespace {

// What is left out of `errnoRet`. Source: OCI runtime-spec 1.2, config-linux.md.
constexpr uint32_t kDefaultErrno = EPERM;
// Above it is no errno. Source: include/linux/err.h, MAX_ERRNO.
constexpr uint32_t kMaxErrno = 4095;

using Context = std::unique_ptr<void, decltype(&::seccomp_release)>;

std::unexpected<Error> Wrong(std::string_view place, std::string_view cause) {
  return Fail(Code::kInvalidArgument, "make the filter of linux.seccomp: {}: {}", place, cause);
}

// libseccomp answers with a negative errno.
std::unexpected<Error> Refused(int answer, std::string_view what) {
  return FailErrno(-answer, "make the filter of linux.seccomp: {}", what);
}

Result<uint32_t> ActionOf(const std::string& word, std::optional<uint32_t> errno_ret,
                          std::string_view place) {
  const uint32_t ret = errno_ret.value_or(kDefaultErrno);
  if (ret > kMaxErrno) {
    return Wrong(place, Format("{} is no errno", ret));
  }
  if (word == "SCMP_ACT_KILL" || word == "SCMP_ACT_KILL_THREAD") {
    return SCMP_ACT_KILL_THREAD;
  }
  if (word == "SCMP_ACT_KILL_PROCESS") {
    return SCMP_ACT_KILL_PROCESS;
  }
  if (word == "SCMP_ACT_TRAP") {
    return SCMP_ACT_TRAP;
  }
  if (word == "SCMP_ACT_ERRNO") {
    return SCMP_ACT_ERRNO(ret);
  }
  if (word == "SCMP_ACT_TRACE") {
    return SCMP_ACT_TRACE(ret);
  }
  if (word == "SCMP_ACT_ALLOW") {
    return SCMP_ACT_ALLOW;
  }
  if (word == "SCMP_ACT_LOG") {
    return SCMP_ACT_LOG;
  }
  if (word == "SCMP_ACT_NOTIFY") {
    return SCMP_ACT_NOTIFY;
  }
  return Wrong(place, Format("'{}' is not an action", word));
}

Result<scmp_compare> OperatorOf(const std::string& word) {
  constexpr std::pair<std::string_view, scmp_compare> kOperators[] = {
      {"SCMP_CMP_NE", SCMP_CMP_NE},
      {"SCMP_CMP_LT", SCMP_CMP_LT},
      {"SCMP_CMP_LE", SCMP_CMP_LE},
      {"SCMP_CMP_EQ", SCMP_CMP_EQ},
      {"SCMP_CMP_GE", SCMP_CMP_GE},
      {"SCMP_CMP_GT", SCMP_CMP_GT},
      {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}};
  const auto found =
      std::ranges::find(kOperators, word, &std::pair<std::string_view, scmp_compare>::first);
  if (found == std::end(kOperators)) {
    return Wrong("args", Format("'{}' is not an operator", word));
  }
  return found->second;
}

Status AddArchitectures(const Context& context, const oci::Seccomp& spec) {
  constexpr std::string_view kPrefix = "SCMP_ARCH_";
  for (const std::string& word : spec.architectures) {
    std::string name = word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : std::string();
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const uint32_t token = name.empty() ? 0 : ::seccomp_arch_resolve_name(name.c_str());
    if (token == 0) {
      return Wrong("architectures", Format("'{}' is not known to libseccomp", word));
    }
    const int answer = ::seccomp_arch_add(context.get(), token);
    if (answer != 0 && answer != -EEXIST) {
      return Refused(answer, Format("architecture '{}'", word));
    }
  }
  return {};
}

Result<std::vector<scmp_arg_cmp>> ArgumentsOf(const oci::Seccomp::Rule& rule) {
  std::vector<scmp_arg_cmp> arguments;
  for (const oci::Seccomp::Argument& argument : rule.args) {
    GANTRY_TRY(const scmp_compare op, OperatorOf(argument.op));
    arguments.push_back({argument.index, op, argument.value, argument.value_two});
  }
  return arguments;
}

bool NameAnArgumentTwice(const std::vector<scmp_arg_cmp>& arguments) {
  uint32_t seen = 0;
  for (const scmp_arg_cmp& argument : arguments) {
    if ((seen >> argument.arg & 1) != 0) {
      return true;
    }
    seen |= 1U << argument.arg;
  }
  return false;
}

// libseccomp takes one condition for each argument; where the profile has two for one, each is a
// rule of its own, as runc and crun read it.
Status AddRule(const Context& context, uint32_t action, int number, const std::string& name,
               const std::vector<scmp_arg_cmp>& arguments) {
  int answer = 0;
  if (NameAnArgumentTwice(arguments)) {
    for (size_t i = 0; i < arguments.size() && answer == 0; ++i) {
      answer = ::seccomp_rule_add_array(context.get(), action, number, 1, &arguments[i]);
    }
  } else {
    answer = ::seccomp_rule_add_array(context.get(), action, number,
                                      static_cast<unsigned>(arguments.size()), arguments.data());
  }
  return answer == 0 || answer == -EEXIST ? Status()
                                          : Refused(answer, Format("system call '{}'", name));
}

Status AddRules(const Context& context, const oci::Seccomp& spec, uint32_t default_action,
                SeccompFilter& filter) {
  for (const oci::Seccomp::Rule& rule : spec.rules) {
    GANTRY_TRY(const uint32_t action, ActionOf(rule.action, rule.errno_ret, "syscalls"));
    filter.notifies = filter.notifies || action == SCMP_ACT_NOTIFY;
    if (action == default_action) {
      continue;  // libseccomp refuses what says nothing.
    }
    GANTRY_TRY(const auto arguments, ArgumentsOf(rule));
    for (const std::string& name : rule.names) {
      const int number = ::seccomp_syscall_resolve_name(name.c_str());
      if (number == __NR_SCMP_ERROR) {
        filter.unknown.push_back(name);
        continue;
      }
      if (action == SCMP_ACT_NOTIFY && name == "sendmsg") {
        return Wrong("syscalls", "SCMP_ACT_NOTIFY for 'sendmsg', by which the listener is sent");
      }
      GANTRY_CHECK_OK(AddRule(context, action, number, name, arguments));
    }
  }
  return {};
}

Result<unsigned> FlagsOf(const oci::Seccomp& spec, bool notifies) {
  unsigned flags = notifies ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  for (const std::string& word : spec.flags) {
    if (word == "SECCOMP_FILTER_FLAG_LOG") {
      flags |= SECCOMP_FILTER_FLAG_LOG;
    } else if (word == "SECCOMP_FILTER_FLAG_SPEC_ALLOW") {
      flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    } else if (word == "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV") {
      flags |= notifies ? SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV : 0;
    } else if (word != "SECCOMP_FILTER_FLAG_TSYNC") {
      // There is one thread: TSYNC changes nothing, and does not go with a listener.
      return Wrong("flags", Format("'{}' is not known", word));
    }
  }
  return flags;
}

}  // namespace

Result<SeccompFilter> CompileSeccomp(const oci::Seccomp& spec) {
  SeccompFilter filter;
  GANTRY_TRY(const uint32_t action,
             ActionOf(spec.default_action, spec.default_errno_ret, "defaultAction"));
  if (action == SCMP_ACT_NOTIFY) {
    return Wrong("defaultAction", "SCMP_ACT_NOTIFY for all: nobody could answer");
  }
  const Context context(::seccomp_init(action), &::seccomp_release);
  if (!context) {
    return Refused(-ENOMEM, "start");
  }
  // no_new_privs is the container's to have or not.
  if (const int answer = ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_NNP, 0); answer != 0) {
    return Refused(answer, "leave no_new_privs");
  }
  GANTRY_CHECK_OK(AddArchitectures(context, spec));
  GANTRY_CHECK_OK(AddRules(context, spec, action, filter));
  GANTRY_TRY(filter.flags, FlagsOf(spec, filter.notifies));
  size_t bytes = 0;
  if (const int answer = ::seccomp_export_bpf_mem(context.get(), nullptr, &bytes); answer != 0) {
    return Refused(answer, "measure it");
  }
  filter.program.resize(bytes / sizeof(sock_filter));
  if (const int answer = ::seccomp_export_bpf_mem(context.get(), filter.program.data(), &bytes);
      answer != 0) {
    return Refused(answer, "write it");
  }
  if (filter.program.size() > BPF_MAXINSNS) {
    return Wrong("syscalls", Format("{} instructions, the kernel takes {}", filter.program.size(),
                                    BPF_MAXINSNS));
  }
  return filter;
}

Result<UniqueFd> LoadSeccomp(const SeccompFilter& filter, std::string_view whose) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.program.size());
  program.filter = const_cast<sock_filter*>(filter.program.data());
  const long answer = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, filter.flags, &program);
  if (answer < 0) {
    return FailErrno(errno, "load the filter of {}", whose);
  }
  return UniqueFd(filter.notifies ? static_cast<int>(answer) : -1);
}

}  // namespace gantry::container
