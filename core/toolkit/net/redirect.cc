// SPDX-License-Identifier: Apache-2.0
//
// Rules of traffic control for what arrives hang on a queueing discipline that queues nothing: an
// interface has one of the kind `ingress`, which is made here, or one of the kind `clsact`, which
// somebody else has made and which takes the same rules at the same place. That goes again with the
// last rule, if it is an `ingress`; the rule is told from those of others by its preference.
//
// The kernel says EBUSY while another request, or one that has just ended, still holds the
// discipline; nothing tells when that is over.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include <gantry/toolkit/net/message.h>
#include <gantry/toolkit/net/redirect.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::net {
namespace {

/// Of the rule, among those of others: nobody's default.
constexpr uint32_t kPreference = 0x6774;
constexpr uint32_t kIngressHandle = 0xffff0000U;
/// Of either kind.
constexpr uint32_t kIngressRules = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);

tcmsg DisciplineOf(int32_t interface) {
  tcmsg header{};
  header.tcm_ifindex = interface;
  header.tcm_handle = kIngressHandle;
  header.tcm_parent = TC_H_INGRESS;
  return header;
}

tcmsg RuleOf(int32_t interface) {
  tcmsg header{};
  header.tcm_ifindex = interface;
  header.tcm_parent = kIngressRules;
  header.tcm_info = TC_H_MAKE(kPreference << 16, htons(ETH_P_ALL));
  return header;
}

std::string DisciplineMessage(int32_t interface) {
  std::string message = MessageOf(DisciplineOf(interface));
  AddWord(message, TCA_KIND, "ingress");
  return message;
}

/// The packet is taken from where it was, and sent.
std::string RedirectAction(int32_t to) {
  tc_mirred mirred{};
  mirred.action = TC_ACT_STOLEN;
  mirred.eaction = TCA_EGRESS_REDIR;
  mirred.ifindex = static_cast<uint32_t>(to);
  std::string options;
  AddAttribute(options, TCA_MIRRED_PARMS, BytesOf(mirred));
  std::string action;
  AddWord(action, TCA_ACT_KIND, "mirred");
  AddAttribute(action, TCA_ACT_OPTIONS, options);
  return action;
}

/// A selector with one key, no bit of which has to be like anything.
std::string MatchAll() {
  std::string selector(sizeof(tc_u32_sel) + sizeof(tc_u32_key), '\0');
  selector[offsetof(tc_u32_sel, flags)] = TC_U32_TERMINAL;
  selector[offsetof(tc_u32_sel, nkeys)] = 1;
  return selector;
}

std::string RuleMessage(int32_t from, int32_t to) {
  std::string actions;
  AddAttribute(actions, 1, RedirectAction(to));
  std::string options;
  AddAttribute(options, TCA_U32_SEL, MatchAll());
  AddAttribute(options, TCA_U32_ACT, actions);
  std::string message = MessageOf(RuleOf(from));
  AddWord(message, TCA_KIND, "u32");
  AddAttribute(message, TCA_OPTIONS, options);
  return message;
}

bool IsOneOf(const Error& error, std::initializer_list<int> all) {
  return std::ranges::find(all, error.sys_errno) != all.end();
}

/// As long as the answer is EBUSY.
Status Try(Deadline deadline, const std::function<Status()>& change) {
  Backoff backoff({.no_event = "tc: EBUSY has no end that one could wait for",
                   .first = std::chrono::milliseconds(1),
                   .longest = std::chrono::milliseconds(50)});
  for (;;) {
    Status done = change();
    if (done || !IsOneOf(done.error(), {EBUSY, EAGAIN}) || !backoff.Sleep(deadline)) {
      return done;
    }
  }
}

/// What the kernel says where a module is missing.
Status Missing(Status done, const char* what, const char* modules) {
  if (!done && IsOneOf(done.error(), {ENOENT, EOPNOTSUPP})) {
    return Fail(Code::kFailedPrecondition,
                "{}: {}: this node's kernel has no traffic control for it: load the modules {}",
                what, done.error().message, modules);
  }
  if (!done) {
    return std::unexpected(std::move(done).error().Within(what));
  }
  return done;
}

/// Gone: the interface, its discipline, or the rule.
bool IsGone(const Error& error) { return IsOneOf(error, {ENODEV, EINVAL, ENOENT}); }

Result<bool> HasRules(RouteSocket& socket, int32_t interface, Deadline deadline) {
  bool any = false;
  const auto look = [&any](std::string_view) {
    any = true;
    return false;
  };
  tcmsg all{};
  all.tcm_ifindex = interface;
  all.tcm_parent = kIngressRules;
  auto dumped = socket.DumpOf(RTM_GETTFILTER, MessageOf(all), look, deadline);
  if (!dumped && !IsGone(dumped.error())) {
    return std::unexpected(std::move(dumped).error());
  }
  return any;
}

}  // namespace

Status Redirect(RouteSocket& socket, int32_t from, int32_t to, Deadline deadline) {
  constexpr uint16_t kNew = NLM_F_CREATE | NLM_F_EXCL;
  Status made = Try(deadline, [&] {
    Status done = socket.Change(RTM_NEWQDISC, kNew, DisciplineMessage(from), deadline);
    return !done && IsOneOf(done.error(), {EEXIST}) ? Status() : done;
  });
  GANTRY_CHECK_OK(Missing(std::move(made), "add the qdisc 'ingress'", "sch_ingress"));
  Status ruled = Try(deadline, [&] {
    return socket.Change(RTM_NEWTFILTER, kNew, RuleMessage(from, to), deadline);
  });
  return Missing(std::move(ruled), "add a filter", "cls_u32 and act_mirred");
}

Status EndRedirect(RouteSocket& socket, int32_t from, Deadline deadline) {
  Status ended = Try(deadline, [&] {
    return socket.Change(RTM_DELTFILTER, 0, MessageOf(RuleOf(from)), deadline);
  });
  if (!ended && !IsGone(ended.error())) {
    return ended;
  }
  GANTRY_TRY(const bool rules, HasRules(socket, from, deadline));
  if (rules) {
    return {};
  }
  // Of another kind it is refused.
  Status removed = Try(
      deadline, [&] { return socket.Change(RTM_DELQDISC, 0, DisciplineMessage(from), deadline); });
  return !removed && IsGone(removed.error()) ? Status() : removed;
}

}  // namespace gantry::net
