// SPDX-License-Identifier: Apache-2.0
//
// Whatever arrives at one interface leaves by another one, before the kernel's own stack sees it:
// what joins a pod's interface and a virtual machine's tap, by two of these. It is a rule of
// traffic control at the interface's ingress: a classifier that matches all (u32, since not every
// kernel has matchall), and the action mirred. Offloaded segments and checksums stay as they are.
// Source: tc-mirred(8), tc-u32(8), Linux, net/sched/act_mirred.c, cls_u32.c, sch_ingress.c.
#pragma once

#include <cstdint>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/net/netlink.h>

namespace gantry::net {

/// `from` has none of this room's yet. Rules of others stay beside it, those of a lower preference
/// before it. It goes with either interface. Errors: kFailedPrecondition: the kernel has not what
/// it takes, and which modules that are; the kernel's. While traffic control is busy it is tried
/// again, up to `deadline`. Thread: any.
Status Redirect(RouteSocket& socket, int32_t from, int32_t to, Deadline deadline);

/// Removes it; rules of others stay. Again: success, as for an interface that is gone.
/// Errors: the kernel's.
Status EndRedirect(RouteSocket& socket, int32_t from, Deadline deadline);

}  // namespace gantry::net
