// SPDX-License-Identifier: Apache-2.0
#include "core/door/operator_calls.h"

#include <chrono>
#include <optional>
#include <utility>

#include <gantry/format.h>

#include "core/link/operator_api.h"
#include "core/rpc/typed.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::door {
namespace {

/// Of who says none: an engine that restarts is back within a second, what waits longer hangs.
constexpr std::chrono::seconds kCallLimit(30);
/// Of one call for events. A client that has gone is noticed between two.
constexpr std::chrono::milliseconds kEventsWait = std::chrono::seconds(10);

}  // namespace

OperatorCalls::OperatorCalls(async::Loop& loop, async::WorkerPool& pool, const std::string& run_dir)
    : pool_(pool), keeper_(run_dir), engine_(loop, run_dir) {}

Status OperatorCalls::Register(rpc::MethodTable& table, StreamTable& streams) {
  for (const char* method : {operator_api::kList, operator_api::kInspect, operator_api::kStatus,
                             operator_api::kEvents}) {
    GANTRY_CHECK_OK(table.Add(operator_api::kService, method,
                              [this](rpc::Call call) { return Forward(std::move(call)); }));
  }
  streams[Format("/{}/{}", operator_api::kService, operator_api::kWatchEvents)] =
      [this](std::shared_ptr<Stream> stream) { return WatchEvents(std::move(stream)); };
  return RegisterKeeper(table);
}

Status OperatorCalls::RegisterKeeper(rpc::MethodTable& table) {
  GANTRY_CHECK_OK((rpc::AddTyped<v1::KeeperRequest, v1::KeeperResponse>(
      table, operator_api::kService, operator_api::kKeeper,
      [this](const rpc::CallContext&,
             v1::KeeperRequest) -> async::Task<Result<v1::KeeperResponse>> {
        GANTRY_CO_TRY(const link::KeeperStatus status,
                      co_await pool_.Run([this] { return keeper_.Query(); }));
        co_return link::ToMessage(status);
      })));
  GANTRY_CHECK_OK((rpc::AddTyped<v1::UpgradeEngineRequest, v1::UpgradeEngineResponse>(
      table, operator_api::kService, operator_api::kUpgradeEngine,
      [this](const rpc::CallContext&,
             v1::UpgradeEngineRequest request) -> async::Task<Result<v1::UpgradeEngineResponse>> {
        const link::Upgrade wanted{request.program(), request.no_fallback()};
        GANTRY_CO_TRY(const link::Upgraded done,
                      co_await pool_.Run([&] { return keeper_.UpgradeEngine(wanted); }));
        v1::UpgradeEngineResponse response;
        response.set_engine_pid(static_cast<uint32_t>(done.engine_pid));
        response.set_fallback(done.fallback);
        co_return response;
      })));
  GANTRY_CHECK_OK((rpc::AddTyped<v1::UpgradeKeeperRequest, v1::UpgradeKeeperResponse>(
      table, operator_api::kService, operator_api::kUpgradeKeeper,
      [this](const rpc::CallContext&,
             v1::UpgradeKeeperRequest request) -> async::Task<Result<v1::UpgradeKeeperResponse>> {
        GANTRY_CO_TRY(const int32_t pid,
                      co_await pool_.Run([&] { return keeper_.UpgradeKeeper(request.program()); }));
        v1::UpgradeKeeperResponse response;
        response.set_keeper_pid(static_cast<uint32_t>(pid));
        co_return response;
      })));
  return rpc::AddTyped<v1::DeleteRequest, v1::DeleteResponse>(
      table, operator_api::kService, operator_api::kDelete,
      [this](const rpc::CallContext&,
             v1::DeleteRequest request) -> async::Task<Result<v1::DeleteResponse>> {
        const link::Delete wanted{request.id(), request.namespace_(), request.bundle(),
                                  request.containerd()};
        GANTRY_CO_TRY(const link::Deleted deleted,
                      co_await pool_.Run([&] { return keeper_.Delete(wanted); }));
        if (!deleted.known) {
          co_return Fail(Code::kNotFound, "delete '{}': the keeper has no such instance",
                         request.id());
        }
        v1::DeleteResponse response;
        response.set_exit_status(deleted.status);
        co_return response;
      });
}

async::Task<Result<std::string>> OperatorCalls::Ask(std::string method, std::string payload,
                                                    std::chrono::nanoseconds limit) {
  co_return co_await engine_.Ask(operator_api::kService, std::move(method), std::move(payload),
                                 limit);
}

async::Task<Result<std::string>> OperatorCalls::Forward(rpc::Call call) {
  const auto limit =
      call.timeout.count() != 0 ? call.timeout : std::chrono::nanoseconds(kCallLimit);
  co_return co_await Ask(std::move(call.method), std::move(call.payload), limit);
}

async::Task<Status> OperatorCalls::WatchEvents(std::shared_ptr<Stream> stream) {
  GANTRY_CO_TRY(const std::optional<std::string> bytes, co_await stream->Read());
  if (!bytes) {
    co_return Fail(Code::kInvalidArgument, "watch events: there is no request");
  }
  v1::EventsRequest request;
  GANTRY_CO_CHECK_OK(rpc::ParseMessage(*bytes, request));
  for (bool first = true; !stream->ended(); first = false) {
    // The first one says where the stream begins, be there anything or not.
    request.set_wait_ms(first ? 0 : static_cast<uint32_t>(kEventsWait.count()));
    GANTRY_CO_TRY(
        std::string answer,
        co_await Ask(operator_api::kEvents, request.SerializeAsString(), kEventsWait + kCallLimit));
    v1::EventsResponse page;
    GANTRY_CO_CHECK_OK(rpc::ParseMessage(answer, page));
    request.set_after(page.last());
    if (first || page.events_size() > 0 || page.lost() > 0) {
      GANTRY_CO_CHECK_OK(co_await stream->Write(std::move(answer)));
    }
  }
  co_return Fail(Code::kCanceled, "the client has gone");
}

}  // namespace gantry::door
