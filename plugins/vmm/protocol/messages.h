// SPDX-License-Identifier: Apache-2.0
//
// The requests of the host and what is answered. proto/gantry/guest/agent.proto says what each
// field is; `kKind` is the request's number, `Answer` what comes back. What tells something of
// containers is in reports.h.
#pragma once

#include "plugins/vmm/protocol/container_messages.h"  // IWYU pragma: export
#include "plugins/vmm/protocol/guest_messages.h"      // IWYU pragma: export
#include "plugins/vmm/protocol/set_up_messages.h"     // IWYU pragma: export
