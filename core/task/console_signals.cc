// SPDX-License-Identifier: Apache-2.0
//
// Signals of consoles that are nobody's controlling terminal here: typed by a user,
// or made by a resize. They wait at the process's `StdioHost` and are passed on to its
// backend one after the other, beside all other calls.
#include <utility>

#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/service.h"

namespace gantry::task {

void Service::OnConsoleSignals(ContainerPtr container, TaskProcessPtr process) {
  if (container && process) {
    const os::Charged charged(container->group->account);
    os::Start(SendConsoleSignals(std::move(container), std::move(process)));
  }
}

os::Task<void> Service::SendConsoleSignals(ContainerPtr container, TaskProcessPtr process) {
  // After a restart the streams go on before their backend is there.
  co_await container->ready.Wait();
  for (uint32_t signal = process->stdio_host->TakeConsoleSignal(); signal != 0;
       signal = process->stdio_host->TakeConsoleSignal()) {
    co_await SendConsoleSignal(container, process, signal);
  }
}

os::Task<void> Service::SendConsoleSignal(ContainerPtr container, TaskProcessPtr process,
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
