// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/events.h"

#include <chrono>
#include <optional>
#include <ostream>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/ctl/client.h"
#include "core/ctl/output.h"
#include "core/ctl/since.h"

namespace gantry::ctl {
namespace {

constexpr std::chrono::milliseconds kWait = std::chrono::seconds(10);
/// How long nobody may answer while it follows.
constexpr std::chrono::seconds kAwayLimit(15);
constexpr Backoff::Terms kAway{.no_event = "who listens at a socket that is gone says nothing",
                               .first = std::chrono::milliseconds(50),
                               .longest = std::chrono::seconds(1)};

/// Text that others have chosen, without what a terminal would obey.
std::string Clean(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      c = '?';
    }
  }
  return text;
}

void Append(std::string& line, std::string_view name, const std::string& value) {
  if (!value.empty()) {
    line += Format("  {}={}", name, Clean(value));
  }
}

/// Asks again, of whoever is there, where nobody has answered.
class Reader {
 public:
  explicit Reader(const std::string& address) : address_(address) {}

  Result<v1::EventsResponse> Next(const v1::EventsRequest& request) {
    std::optional<Deadline> until;
    Backoff pause(kAway);
    for (;;) {
      Result<v1::EventsResponse> answer = Ask(request);
      if (answer || !told_ || !IsAway(answer.error().code)) {
        told_ = told_ || answer.has_value();
        return answer;
      }
      client_.reset();
      until = until.value_or(std::chrono::steady_clock::now() + kAwayLimit);
      if (!pause.Sleep(*until)) {
        return answer;
      }
    }
  }

 private:
  static bool IsAway(Code code) {
    return code == Code::kUnavailable || code == Code::kDeadlineExceeded;
  }

  Result<v1::EventsResponse> Ask(const v1::EventsRequest& request) {
    if (!client_) {
      GANTRY_TRY(OperatorClient client, OperatorClient::Connect(address_));
      client_.emplace(std::move(client));
    }
    return client_->Events(request);
  }

  const std::string& address_;
  std::optional<OperatorClient> client_;
  /// Somebody has answered once: who is not there now is expected back.
  bool told_ = false;
};

}  // namespace

std::string EventLine(const v1::Event& event) {
  std::string line = Format("{}  {:<19}", TimeText(event.time_ns()), Clean(event.type()));
  if (!event.id().empty()) {
    line += Format("  {}/{}", Clean(event.namespace_()), Clean(event.id()));
  }
  Append(line, "sandbox", event.sandbox_id());
  Append(line, "exec", event.exec_id());
  Append(line, "pid", NumberText(event.pid()));
  if (event.type().ends_with(".exited")) {
    Append(line, "status", std::to_string(event.exit_status()));
  }
  if (!event.message().empty()) {
    line += "  " + Clean(event.message());
  }
  return line + "\n";
}

std::string EventJson(const v1::Event& event) {
  std::string line = Format(
      "{{\"number\":{},\"time\":\"{}\",\"type\":{},\"namespace\":{},\"id\":{},\"sandbox_id\":{},"
      "\"exec_id\":{},\"pid\":{}",
      event.number(), TimeText(event.time_ns()), oci::Quote(event.type()),
      oci::Quote(event.namespace_()), oci::Quote(event.id()), oci::Quote(event.sandbox_id()),
      oci::Quote(event.exec_id()), event.pid());
  if (event.type().ends_with(".exited")) {
    line += Format(",\"exit_status\":{}", event.exit_status());
  }
  return line + Format(",\"message\":{}}}\n", oci::Quote(event.message()));
}

Status ShowEvents(const Arguments& arguments, const Output& output) {
  v1::EventsRequest request;
  request.set_namespace_(arguments.ns);
  if (!arguments.operands.empty()) {
    request.set_id(arguments.operands.front());
  }
  if (!arguments.since.empty()) {
    GANTRY_TRY(const int64_t since, ParseSince(arguments.since, NowNs()));
    request.set_since_ns(since);
  }
  Reader reader(arguments.address);
  for (;;) {
    GANTRY_TRY(const v1::EventsResponse page, reader.Next(request));
    if (page.lost() > 0) {
      output.err << "gantryctl: " << page.lost() << " event(s) came and went before these\n";
    }
    for (const v1::Event& event : page.events()) {
      output.out << (arguments.json ? EventJson(event) : EventLine(event));
    }
    output.out.flush();
    request.set_after(page.last());
    if (!output.out || (page.events_size() == 0 && !arguments.follow)) {
      return {};
    }
    if (arguments.follow) {
      request.set_wait_ms(static_cast<uint32_t>(kWait.count()));
    }
  }
}

}  // namespace gantry::ctl
