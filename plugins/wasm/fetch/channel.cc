// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/channel.h"

#include <gantry/format.h>

namespace gantry::wasm::fetch {
namespace {

// What containerd sends in one message at most. Source: containerd 2.3, defaults/defaults.go.
constexpr int kMaxMessageBytes = 16 << 20;

}  // namespace

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // Neither a proxy nor a service's configuration out of DNS is for a socket of this node.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel("unix://" + address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

Status StatusOf(const grpc::Status& status, const std::string& address, const std::string& ns,
                const std::string& what) {
  const std::string asked = Format("ask containerd at '{}' to {}", address, what);
  const auto& told = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return {};
    case grpc::StatusCode::UNAVAILABLE:
      return Fail(Code::kUnavailable, "{}: it cannot be reached: {}", asked, told);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Fail(Code::kDeadlineExceeded, "{}: no answer in time", asked);
    // As an answer to Create it would make containerd try an older version of the interface.
    case grpc::StatusCode::UNIMPLEMENTED:
      return Fail(Code::kFailedPrecondition, "{}: it has no such service: {}", asked, told);
    case grpc::StatusCode::UNKNOWN:
      return Fail(Code::kInternal, "{}: {}", asked, told);
    default:
      return Fail(static_cast<Code>(status.error_code()), "{}{}: {}", asked,
                  ns.empty() ? std::string() : Format(", namespace '{}'", ns), told);
  }
}

}  // namespace gantry::wasm::fetch
