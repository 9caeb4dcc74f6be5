// SPDX-License-Identifier: Apache-2.0
#include "core/door/engine_client.h"

#include <utility>

#include "core/link/operator_api.h"

namespace gantry::door {
namespace {

constexpr std::chrono::seconds kConnectLimit(5);

}  // namespace

EngineClient::EngineClient(async::Loop& loop, const std::string& run_dir)
    : loop_(loop), socket_(run_dir + "/" + operator_api::kSocketName) {}

async::Task<Result<std::string>> EngineClient::Ask(std::string service, std::string method,
                                                   std::string payload,
                                                   std::chrono::nanoseconds limit) {
  std::shared_ptr<rpc::Client> client = client_;
  if (!client || client->closed()) {
    Result<std::unique_ptr<rpc::Client>> made =
        co_await rpc::Client::Connect(loop_, socket_, kConnectLimit);
    if (!made) {
      co_return Fail(Code::kUnavailable, "reach gantry at '{}': {}", socket_, made.error().message);
    }
    client = std::move(*made);
    client_ = client;
  }
  co_return co_await client->Call(std::move(service), std::move(method), std::move(payload), limit);
}

}  // namespace gantry::door
