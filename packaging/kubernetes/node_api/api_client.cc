// SPDX-License-Identifier: Apache-2.0
#include "packaging/kubernetes/node_api/api_client.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::node_api {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr auto kLimit = std::chrono::seconds(30);
constexpr size_t kMostBody = size_t{32} << 20;
constexpr size_t kMostToken = size_t{64} << 10;
constexpr char kAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string Environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

http::request<http::string_body> RequestOf(const ApiServer& server, const ApiRequest& asked) {
  http::request<http::string_body> request(http::string_to_verb(asked.method), asked.target, 11);
  // An address of version 6 has brackets in a URL.
  request.set(http::field::host, server.host.contains(':') ? "[" + server.host + "]" : server.host);
  request.set(http::field::user_agent, "gantry-node-api");
  request.set(http::field::accept, "application/json");
  request.set(http::field::authorization, "Bearer " + server.token);
  if (!asked.body.empty()) {
    request.set(http::field::content_type, asked.content_type);
    request.body() = asked.body;
  }
  request.prepare_payload();
  return request;
}

asio::awaitable<http::response<http::string_body>> Exchange(ApiServer server, ApiRequest asked) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ssl::context tls(asio::ssl::context::tls_client);
  tls.load_verify_file(server.ca_file);
  tls.set_verify_mode(asio::ssl::verify_peer);
  beast::ssl_stream<beast::tcp_stream> stream(executor, tls);
  stream.set_verify_callback(asio::ssl::host_name_verification(server.host));
  beast::get_lowest_layer(stream).expires_after(kLimit);
  asio::ip::tcp::resolver resolver(executor);
  const auto found = co_await resolver.async_resolve(server.host, server.port, asio::use_awaitable);
  co_await beast::get_lowest_layer(stream).async_connect(found, asio::use_awaitable);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  const auto request = RequestOf(server, asked);
  co_await http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostBody);
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  co_return parser.release();
}

Code CodeOf(http::status status) {
  switch (status) {
    case http::status::unauthorized:
    case http::status::forbidden:
      return Code::kPermissionDenied;
    case http::status::not_found:
      return Code::kNotFound;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Result<ApiServer> ApiServer::OfThisPod() {
  ApiServer server{.host = Environment("KUBERNETES_SERVICE_HOST"),
                   .port = Environment("KUBERNETES_SERVICE_PORT"),
                   .token = "",
                   .ca_file = ""};
  std::string account = Environment("GANTRY_SERVICE_ACCOUNT");
  if (account.empty()) {
    account = kAccount;
  }
  if (server.host.empty() || server.port.empty()) {
    return Fail(Code::kFailedPrecondition,
                "no KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: this is no pod");
  }
  auto token = ReadFile(account + "/token", kMostToken);
  if (!token) {
    return Fail(Code::kFailedPrecondition, "the pod has no service account: {}",
                token.error().message);
  }
  server.token = token->substr(0, token->find_first_of("\r\n"));
  server.ca_file = account + "/ca.crt";
  return server;
}

Result<std::string> Call(const ApiServer& server, const ApiRequest& request) {
  const std::string what =
      Format("{} https://{}:{}{}", request.method, server.host, server.port, request.target);
  asio::io_context loop;
  std::exception_ptr failed;
  http::response<http::string_body> answer;
  asio::co_spawn(loop, Exchange(server, request),
                 [&](std::exception_ptr error, http::response<http::string_body> got) {
                   failed = std::move(error);
                   answer = std::move(got);
                 });
  // The seam to Boost.
  try {
    loop.run();
    if (failed) {
      std::rethrow_exception(failed);
    }
  } catch (const boost::system::system_error& error) {
    const bool late = error.code() == beast::error::timeout;
    return Fail(late ? Code::kDeadlineExceeded : Code::kUnavailable, "{}: {}", what,
                error.code().message());
  }
  if (http::to_status_class(answer.result()) != http::status_class::successful) {
    return Fail(CodeOf(answer.result()), "{}: {}: {}", what, answer.result_int(),
                answer.body().substr(0, 500));
  }
  return std::move(answer.body());
}

}  // namespace gantry::node_api
