// SPDX-License-Identifier: Apache-2.0
//
// Making and recovering a process's streams; all else is passed on to their state. Descriptors
// that an engine before this one has left in the store (`StdioOptions::left`) are dropped last,
// and only those that have not got a new meaning, since the names are the same.
#include "core/io/process_io.h"

#include <utility>

#include "core/io/stdio_state.h"

namespace gantry::io {

ProcessIo::ProcessIo(std::shared_ptr<State> state) : state_(std::move(state)) {}

ProcessIo::~ProcessIo() { state_->Abandon(); }

Result<std::unique_ptr<ProcessIo>> ProcessIo::Open(Relay& relay, StdioHost& host,
                                                   const StdioPaths& paths, StdioOptions options) {
  const auto failed = [&](Error error) {
    if (!options.left.empty()) {
      host.Drop(options.left);
    }
    return std::unexpected(std::move(error));
  };
  Result<StdioUri> uri = ParseStdio(paths);
  if (!uri) {
    return failed(std::move(uri).error());
  }
  Result<OpenedStdio> opened = OpenStdio(relay, host, *uri, options);
  if (!opened) {
    return failed(std::move(opened).error());
  }
  auto state = std::make_shared<State>(relay, host, std::move(*uri), options, paths.terminal);
  std::unique_ptr<ProcessIo> io(new ProcessIo(state));
  if (auto status = state->AdoptOpened(std::move(*opened)); !status) {
    state->Close();
    return failed(std::move(status).error());
  }
  state->AwaitClients();
  return io;
}

Result<std::unique_ptr<ProcessIo>> ProcessIo::Recover(Relay& relay, StdioHost& host,
                                                      const StdioPaths& paths, StdioOptions options,
                                                      std::vector<StoredFd> stored) {
  GANTRY_TRY(StdioUri uri, ParseStdio(paths));
  auto state =
      std::make_shared<State>(relay, host, std::move(uri), std::move(options), paths.terminal);
  std::unique_ptr<ProcessIo> io(new ProcessIo(state));
  GANTRY_CHECK_OK(state->AdoptStored(std::move(stored)));
  state->AwaitClients();
  return io;
}

bool ProcessIo::RecoverBlocks(const StdioPaths& paths) {
  const Result<StdioUri> uri = ParseStdio(paths);
  return uri && (uri->kind == StdioKind::kFile || IsBinary(*uri));
}

bool ProcessIo::Streams(const StdioPaths& paths) {
  const Result<StdioUri> uri = ParseStdio(paths);
  return uri && uri->kind == StdioKind::kStreaming;
}

bool ProcessIo::terminal() const { return state_->terminal(); }

Result<Stdio> ProcessIo::Take() { return state_->Take(); }

void ProcessIo::Started() { state_->Started(); }

Result<UniqueFd> ProcessIo::OpenConsole(ConsoleKind kind) { return state_->OpenConsole(kind); }

Status ProcessIo::AttachConsole(UniqueFd master, ConsoleKind kind) {
  return state_->AttachConsole(std::move(master), kind);
}

Status ProcessIo::AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) {
  return state_->AttachStream(stream, std::move(fd), framing);
}

Status ProcessIo::Resize(ConsoleSize size) { return state_->Resize(size); }

void ProcessIo::CloseStdin() { state_->CloseStdin(); }

void ProcessIo::Ended() { state_->Ended(); }

size_t ProcessIo::UnreadBytes() const { return state_->UnreadBytes(); }

void ProcessIo::WhenDrained(std::move_only_function<void()> done) {
  state_->WhenDrained(std::move(done));
}

void ProcessIo::Close() { state_->Close(); }

}  // namespace gantry::io
