// SPDX-License-Identifier: Apache-2.0
//
// gantry-grpc: gRPC beside the engine, in a process of its own. The engine starts it, as a child of
// the keeper, where the configuration names an address; it outlives engines, whose sockets it calls
// as containerd does, and is started again when it ends. What listens is a descriptor that the
// keeper holds.
//
// Told to end it lets nobody in, and goes as soon as no call has something to do: who waits for the
// end of a sandbox gets UNAVAILABLE from gRPC, and asks again.
//
// Where a collector is configured it exports the engine's spans to that, whether it serves or not.
//
// With --dial it is gantryctl's end of a connection to such a program (dial.h).
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/door/command_line.h"
#include "core/door/controller.h"
#include "core/door/descriptors.h"
#include "core/door/dial.h"
#include "core/door/listener.h"
#include "core/door/operator_calls.h"
#include "core/door/reflection.h"
#include "core/door/server.h"
#include "core/door/span_export.h"
#include "core/link/paths.h"
#include "core/log/log.h"
#include "core/log/rotation.h"
#include "core/os/memory.h"
#include "core/os/process.h"
#include "core/rpc/method_table.h"

namespace gantry::door {
namespace {

/// gRPC's library serves it.
constexpr char kHealthService[] = "grpc.health.v1.Health";
constexpr int kWorkers = 8;
constexpr size_t kMostQueued = 4096;
/// What calls under way are given when it is told to end.
constexpr std::chrono::seconds kLastCalls(10);
constexpr std::chrono::milliseconds kRetirePace(5);

/// Until no call has something to do.
void Retire(async::Loop& loop, const Server& server, async::TimePoint until) {
  if (!server.IsBusy() || loop.Now() >= until) {
    loop.Stop();
  } else {
    loop.After(kRetirePace, [&loop, &server, until] { Retire(loop, server, until); });
  }
}

/// Until it is told to end, which it does at once: spans may be lost.
Status OnlyExport(const CommandLine& line) {
  async::Loop loop;
  GANTRY_TRY(const UniqueFd signals, os::OpenSignalFd({SIGTERM, SIGINT}));
  const SpanExport spans(loop, line.run_dir, line.export_to, GANTRY_VERSION);
  loop.Watch(signals.get(), EPOLLIN, [&loop](uint32_t) { loop.Stop(); });
  LogInfo("spans are exported, pid {}", getpid());
  loop.Run();
  std::fflush(stderr);
  _exit(0);
}

Status Serve(const CommandLine& line) {
  async::Loop loop;
  async::WorkerPool pool(loop, kWorkers, kMostQueued);
  const Folders folders(line.sandboxes);
  Controller controller(loop, pool, folders,
                        {line.run_dir, line.containerd, line.containerd_ttrpc});
  OperatorCalls operator_calls(loop, pool, line.run_dir);
  rpc::MethodTable table;
  StreamTable streams;
  GANTRY_CHECK_OK(controller.Register(table));
  GANTRY_CHECK_OK(operator_calls.Register(table, streams));
  GANTRY_TRY(Descriptors descriptors, Descriptors::Read(ServedFiles()));
  std::vector<std::string> services = ServicesOf(table, streams);
  services.emplace_back(kHealthService);
  Reflection reflection(std::move(descriptors), std::move(services));
  reflection.Register(streams);
  // Before gRPC's threads: they inherit what is blocked.
  GANTRY_TRY(const UniqueFd signals, os::OpenSignalFd({SIGTERM, SIGINT}));
  GANTRY_TRY(const std::unique_ptr<Server> server, Server::Start(loop, table, streams, {}));
  // Before anybody is let in: what is made from then on is not left over.
  GANTRY_TRY(std::vector<Folders::Left> left, folders.All());
  Listener listener(loop, UniqueFd(line.listen_fd),
                    [&server](UniqueFd connection) { server->Take(std::move(connection)); });
  async::WatchId watch;
  watch = loop.Watch(signals.get(), EPOLLIN, [&](uint32_t) {
    loop.Rearm(watch, 0);
    listener.Stop();
    Retire(loop, *server, loop.Now() + kLastCalls);
  });
  async::Start(controller.Recover(std::move(left)));
  std::optional<SpanExport> spans;
  if (!line.export_to.empty()) {
    spans.emplace(loop, line.run_dir, line.export_to, GANTRY_VERSION);
  }
  LogInfo("gRPC is served, pid {}", getpid());
  loop.Run();
  std::fflush(stderr);
  // Taking gRPC apart would wait for who waits for the end of a sandbox.
  _exit(0);
}

}  // namespace
}  // namespace gantry::door

int main(int argc, char** argv) {
  gantry::os::SaveMemory();
  gantry::os::IgnoreSigpipe();
  gantry::Result<gantry::door::CommandLine> line = gantry::door::ParseCommandLine(argc, argv);
  if (!line) {
    std::fprintf(stderr, "gantry-grpc: %s\n", line.error().message.c_str());
    return 2;
  }
  if (line->help || line->version) {
    std::puts(line->help ? gantry::door::Usage().c_str() : "gantry-grpc " GANTRY_VERSION);
    return 0;
  }
  if (!line->dial.empty()) {
    const gantry::Status dialled =
        gantry::door::Dial(gantry::UniqueFd(line->socket_fd), line->dial);
    return dialled ? 0 : 1;
  }
  // Of another keeper's node it would know nothing; its engine starts its own.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  gantry::log::KeepBounded(line->run_dir + "/grpc.log", gantry::link::kMaxLogBytes);
  const gantry::Status served =
      line->listen_fd < 0 ? gantry::door::OnlyExport(*line) : gantry::door::Serve(*line);
  gantry::LogError("{}: {}", line->listen_fd < 0 ? "export spans" : "serve gRPC",
                   served.error().message);
  return 1;
}
