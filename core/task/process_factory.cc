// SPDX-License-Identifier: Apache-2.0
//
// A process and what is lent to its backend, before anything of it is made.
#include "core/task/process_factory.h"

#include <memory>
#include <utility>

#include "core/backend/context.h"
#include "core/link/name_owner.h"
#include "core/task/console_signals.h"
#include "core/task/container.h"
#include "core/task/exit_relay.h"
#include "core/task/parts.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

TaskProcessPtr ProcessFactory::NewProcess(Container& container, ExecId id) {
  auto process = std::make_shared<TaskProcess>(container, std::move(id));
  process->stdio_host = std::make_shared<StdioHost>(
      parts_.services, link::NameOwner::Process(container.instance, process->id.str()).Prefix(),
      container.group->address,
      [this, owner = container.weak_from_this(), weak = std::weak_ptr(process)] {
        console_signals_.OnConsoleSignals(owner.lock(), weak.lock());
      });
  process->context = std::make_unique<ProcessContextImpl>(parts_, exits_, process);
  process->context->SetBackend(container.backend_name);
  return process;
}

}  // namespace gantry::task
