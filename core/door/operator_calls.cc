// SPDX-License-Identifier: Apache-2.0
#include "core/door/operator_calls.h"

#include <utility>

#include "core/ctl/operator.h"

namespace gantry::door {
namespace {

constexpr std::chrono::seconds kConnectLimit(5);
/// Of who says none: an engine that restarts is back within a second, what waits longer hangs.
constexpr std::chrono::seconds kCallLimit(30);

}  // namespace

OperatorCalls::OperatorCalls(async::Loop& loop, const std::string& run_dir)
    : loop_(loop), socket_(run_dir + "/" + ctl::kSocketName) {}

Status OperatorCalls::Register(rpc::MethodTable& table) {
  for (const char* method : {ctl::kList, ctl::kInspect, ctl::kStatus}) {
    GANTRY_CHECK_OK(table.Add(ctl::kService, method,
                              [this](rpc::Call call) { return Forward(std::move(call)); }));
  }
  return {};
}

async::Task<Result<std::string>> OperatorCalls::Forward(rpc::Call call) {
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
  const auto limit =
      call.timeout.count() != 0 ? call.timeout : std::chrono::nanoseconds(kCallLimit);
  co_return co_await client->Call(std::move(call.service), std::move(call.method),
                                  std::move(call.payload), limit);
}

}  // namespace gantry::door
