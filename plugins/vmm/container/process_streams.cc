// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/process_streams.h"

#include <array>
#include <utility>

namespace gantry::vmm {

Result<ProcessStreams> ProcessStreams::Expect(StreamListener& streams, bool terminal) {
  ProcessStreams made(streams);
  using Token = std::string protocol::Streams::*;
  const std::vector<Token> wanted =
      terminal ? std::vector<Token>{&protocol::Streams::terminal}
               : std::vector<Token>{&protocol::Streams::input, &protocol::Streams::output,
                                    &protocol::Streams::error};
  for (const Token token : wanted) {
    GANTRY_TRY(made.tokens_.*token, streams.Expect());
    made.expected_.push_back(made.tokens_.*token);
  }
  return made;
}

ProcessStreams::ProcessStreams(ProcessStreams&& other) noexcept
    : streams_(other.streams_),
      tokens_(std::move(other.tokens_)),
      expected_(std::exchange(other.expected_, {})) {}

ProcessStreams::~ProcessStreams() {
  for (const std::string& token : expected_) {
    streams_->Forget(token);
  }
}

Result<UniqueFd> ProcessStreams::Take(const std::string& token, Deadline deadline) {
  std::erase(expected_, token);
  return streams_->Take(token, deadline);
}

Status ProcessStreams::Attach(ProcessContext& context, Deadline deadline) {
  if (!tokens_.terminal.empty()) {
    GANTRY_TRY(UniqueFd carrier, Take(tokens_.terminal, deadline));
    GANTRY_TRY(UniqueFd input, carrier.Duplicate());
    GANTRY_CHECK_OK(context.AttachStream(Stream::kStdin, std::move(input), StreamFraming::kFrames));
    return context.AttachStream(Stream::kStdout, std::move(carrier), StreamFraming::kFrames);
  }
  const std::array<std::pair<Stream, const std::string*>, 3> all = {
      {{Stream::kStdin, &tokens_.input},
       {Stream::kStdout, &tokens_.output},
       {Stream::kStderr, &tokens_.error}}};
  for (const auto& [stream, token] : all) {
    GANTRY_TRY(UniqueFd socket, Take(*token, deadline));
    GANTRY_CHECK_OK(context.AttachStream(stream, std::move(socket), StreamFraming::kFrames));
  }
  return {};
}

}  // namespace gantry::vmm
