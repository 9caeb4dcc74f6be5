// SPDX-License-Identifier: Apache-2.0
#include "core/task/streams.h"

#include <utility>

#include "core/async/worker_pool.h"
#include "core/io/process_io.h"
#include "core/io/relay.h"
#include "core/task/backend_calls.h"
#include "core/task/parts.h"
#include "core/task/requests.h"
#include "core/task/stdio_host.h"

namespace gantry::task {

async::Task<Status> OpenStreams(const Parts& parts, BackendCalls& calls, TaskProcessPtr process,
                                io::GivenUp given_up) {
  io::StdioOptions options = StdioOptionsOf(*process, parts.config);
  options.left = std::exchange(process->left_streams, {});
  options.given_up = std::move(given_up);
  const io::StdioPaths paths = StdioPathsOf(*process);
  const auto open = [&]() -> Result<std::shared_ptr<io::ProcessIo>> {
    GANTRY_TRY(auto opened, io::ProcessIo::Open(parts.relay, *process->stdio_host, paths, options));
    return WithHost(std::move(opened), process->stdio_host);
  };
  GANTRY_CO_TRY(process->io, co_await calls.StreamPool().RunFor(options.account, open));
  if (process->stdin_closed) {
    process->io->CloseStdin();  // CloseIO came while the streams were being opened.
  }
  co_return Status();
}

}  // namespace gantry::task
