// SPDX-License-Identifier: Apache-2.0
//
// Each process's signals in their order; one that nobody can take is left out.
#include "core/task/console_signals.h"

#include <utility>

#include "core/config/config.h"
#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/backend_proxy.h"
#include "core/task/parts.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

async::Task<void> AwaitExecStart(TaskProcessPtr process) {
  if (!process->is_init() && process->life.is_starting()) {
    const async::Slot::Hold started = co_await process->slot.Acquire();
  }
}

void ConsoleSignals::OnConsoleSignals(ContainerPtr container, TaskProcessPtr process) {
  if (container && process) {
    const async::Charged charged(container->group->account);
    async::Start(SendConsoleSignals(std::move(container), std::move(process)));
  }
}

async::Task<void> ConsoleSignals::SendConsoleSignals(ContainerPtr container,
                                                     TaskProcessPtr process) {
  // After a restart the streams go on before their backend is there.
  co_await container->ready.Wait();
  for (uint32_t signal = process->stdio_host->TakeConsoleSignal(); signal != 0;
       signal = process->stdio_host->TakeConsoleSignal()) {
    co_await SendConsoleSignal(container, process, signal);
  }
}

async::Task<void> ConsoleSignals::SendConsoleSignal(ContainerPtr container, TaskProcessPtr process,
                                                    uint32_t signal) {
  co_await AwaitExecStart(process);
  const bool has_backend =
      process->is_init() ? container->backend != nullptr : process->backend != nullptr;
  // Before its start there is nobody to get a signal, as with a kernel's terminal.
  if (!has_backend || !process->life.may_run()) {
    co_return;
  }
  const Status sent = co_await proxy_.ConsoleSignal(*container, *process, signal,
                                                    DeadlineIn(parts_.config.timeouts.kill));
  if (!sent && sent.error().code != Code::kUnimplemented && sent.error().code != Code::kNotFound) {
    LogWarning({{"id", container->id.str()}, {"exec", process->id.str()}},
               "signal {} of its console: {}", signal, sent.error().message);
  }
}

}  // namespace gantry::task
