// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/request.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <gantry/format.h>

namespace gantry::metrics {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::string_view kEnd = "\r\n\r\n";

Request Refuse(int status, std::string complaint) {
  Request request;
  request.status = status;
  request.complaint = std::move(complaint);
  return request;
}

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

/// What stands before the first `mark`; `text` is what is behind it then.
std::string_view CutAt(std::string_view& text, char mark) {
  const std::string_view part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  const size_t first = part.find_first_not_of(" \t");
  return first == std::string_view::npos
             ? std::string_view()
             : part.substr(first, part.find_last_not_of(" \t") + 1 - first);
}

/// `name` as it is, in any case; `lower` has no capitals. Beast's own `iequals` reads a byte behind
/// the end of what is equal but for its case (Boost 1.83, beast/core/impl/string.ipp).
bool IsCalled(std::string_view name, std::string_view lower) {
  return std::ranges::equal(
      name, lower, [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

/// How welcome a media range with these parameters is, 0 to 1.
/// Source: RFC 9110, 12.4.2 and 12.5.1.
double WelcomeOf(std::string_view parameters) {
  while (!parameters.empty()) {
    std::string_view value = CutAt(parameters, ';');
    const std::string_view name = CutAt(value, '=');
    if (name != "q" && name != "Q") {
      continue;
    }
    double welcome = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), welcome);
    return error == std::errc() && welcome > 0 ? std::min(welcome, 1.0) : 0.0;
  }
  return 1.0;
}

Request Judge(const http::request<http::empty_body>& asked, std::optional<std::uint64_t> length,
              bool chunked) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) {
    return Refuse(405, "only GET and HEAD are served");
  }
  if (chunked || length.value_or(0) > 0) {
    return Refuse(400, "a request without a body is expected");
  }
  const std::string_view target = View(asked.target());
  if (target.substr(0, target.find('?')) != "/metrics") {
    return Refuse(404, "the metrics are at /metrics");
  }
  Request request;
  request.status = 200;
  request.head_only = asked.method() == http::verb::head;
  request.keep_alive = asked.keep_alive();
  request.format = FormatFor(View(asked[http::field::accept]));
  return request;
}

Request Parse(std::string_view head) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMaxHeadBytes);
  beast::error_code error;
  parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error && error != http::error::unexpected_body) {
    return Refuse(error == http::error::header_limit ? 431 : 400,
                  Format("no HTTP request: {}", error.message()));
  }
  if (!parser.is_header_done()) {
    return Refuse(400, "no HTTP request: its head has no end");
  }
  const auto length = parser.content_length();
  Request request =
      Judge(parser.get(), length ? std::optional<std::uint64_t>(*length) : std::nullopt,
            parser.chunked());
  request.bytes = head.size();
  return request;
}

}  // namespace

TextFormat FormatFor(std::string_view accept) {
  double open_metrics = 0;
  double text = 0;
  while (!accept.empty()) {
    std::string_view range = CutAt(accept, ',');
    const std::string_view type = CutAt(range, ';');
    if (IsCalled(type, "application/openmetrics-text")) {
      open_metrics = std::max(open_metrics, WelcomeOf(range));
    } else if (IsCalled(type, "text/plain")) {
      text = std::max(text, WelcomeOf(range));
    }
  }
  return open_metrics > 0 && open_metrics >= text ? TextFormat::kOpenMetrics
                                                  : TextFormat::kPrometheus;
}

Request ReadRequest(std::string_view arrived) {
  const size_t end = arrived.substr(0, kMaxHeadBytes).find(kEnd);
  if (end == std::string_view::npos) {
    return arrived.size() < kMaxHeadBytes
               ? Request()
               : Refuse(431, Format("the head of a request has at most {} bytes", kMaxHeadBytes));
  }
  // The seam to Boost.Beast.
  try {
    return Parse(arrived.substr(0, end + kEnd.size()));
  } catch (const std::exception& exception) {
    return Refuse(400, Format("no HTTP request: {}", exception.what()));
  }
}

}  // namespace gantry::metrics
