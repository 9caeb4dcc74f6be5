// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/prober.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/protowire.h>

#include "core/rpc/blocking_client.h"
#include "tests/performance/instance.h"
#include "tests/performance/samples.h"

namespace gantry::bench {
namespace {

constexpr std::chrono::milliseconds kPace{1};

}  // namespace

Status Prober::Start(const std::string& socket, const std::string& id, const std::string& ns) {
  GANTRY_TRY(rpc::BlockingClient connected, rpc::BlockingClient::Connect(socket));
  ProtoWriter request;
  request.Text(1, id);
  thread_ =
      std::thread([this, ns, client = std::move(connected), payload = request.Take()] mutable {
        while (!stop_ && failed_) {
          const auto sent = Clock::now();
          const auto answer =
              client.Call(std::string(kTaskService), "State", payload, Instance::kLimit,
                          {{std::string(rpc::kNamespaceKey), ns}});
          if (!answer) {
            failed_ = std::unexpected(answer.error());
          }
          longest_ = std::max(longest_, MillisecondsSince(sent));
          std::this_thread::sleep_until(sent + kPace);
        }
      });
  return {};
}

Result<double> Prober::Stop() {
  stop_ = true;
  thread_.join();
  GANTRY_CHECK_OK(failed_);
  return longest_;
}

Prober::~Prober() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace gantry::bench
