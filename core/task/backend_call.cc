// SPDX-License-Identifier: Apache-2.0
#include "core/task/backend_call.h"

#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

BackendCall::BackendCall(const Container& from, const TaskProcess* exec)
    : entry(from.sandbox),
      sandbox(entry ? entry->sandbox : nullptr),
      container(from.backend),
      process(exec == nullptr || exec->is_init() ? from.backend : exec->backend),
      cgroup(from.cgroup),
      whose(exec == nullptr || exec->is_init() ? from.id.str()
                                               : from.id.str() + "/" + exec->id.str()) {}

const std::string& BackendCall::backend_name() const { return entry->backend_name; }

}  // namespace gantry::task
