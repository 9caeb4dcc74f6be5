// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/rest/http.h"

#include <algorithm>
#include <cctype>

#include <gantry/format.h>
#include <gantry/number.h>

namespace gantry::vmm {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kVersion = "HTTP/1.";
constexpr int kNoContent = 204;
constexpr int kFirstFinal = 200;
constexpr int kLastStatus = 599;
constexpr size_t kStatusDigits = 3;
constexpr size_t kMaxShown = 80;
/// More than any length that is taken has.
constexpr size_t kMaxDigits = 10;

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kMaxShown));
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

std::unexpected<Error> NoAnswer(std::string_view why, std::string_view what = {}) {
  return Fail(Code::kDataLoss, "its answer is not taken: {}{}{}", why, what.empty() ? "" : ": ",
              Shown(what));
}

std::string_view Trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool IsCalled(std::string_view name, std::string_view lower) {
  return std::ranges::equal(
      name, lower, [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

}  // namespace

std::string TextOf(const HttpRequest& request) {
  std::string text = Format("{} {} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n",
                            request.method, request.target);
  if (!request.body.empty()) {
    text += Format("Content-Type: application/json\r\nContent-Length: {}\r\n", request.body.size());
  }
  text += kEndOfLine;
  text += request.body;
  return text;
}

Status HttpAnswerReader::ReadField(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return NoAnswer("a line of its head is none", line);
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (IsCalled(name, "transfer-encoding") || IsCalled(name, "content-encoding")) {
    return NoAnswer("it is encoded, which gantry does not read", line);
  }
  if (!IsCalled(name, "content-length")) {
    return {};
  }
  if (value.size() > kMaxDigits || !std::ranges::all_of(value, IsDigit)) {
    return NoAnswer("its length is none", value);
  }
  const Result<int64_t> length = ParseNumber(value);
  if (!length || (length_ && *length_ != static_cast<size_t>(*length))) {
    return NoAnswer("its length is none, or there are two", value);
  }
  if (static_cast<size_t>(*length) > kMaxHttpBody) {
    return NoAnswer(Format("its body has {} bytes, of which {} are taken", *length, kMaxHttpBody));
  }
  length_ = static_cast<size_t>(*length);
  return {};
}

Status HttpAnswerReader::ReadHead(std::string_view head) {
  const std::string_view line = head.substr(0, head.find(kEndOfLine));
  // "HTTP/1.1 204 No Content", where the words may be missing.
  constexpr size_t kDigits = kVersion.size() + 2;
  const bool good =
      line.starts_with(kVersion) && line.size() >= kDigits + kStatusDigits &&
      IsDigit(line[kVersion.size()]) && line[kDigits - 1] == ' ' &&
      std::ranges::all_of(line.substr(kDigits, kStatusDigits), IsDigit) &&
      (line.size() == kDigits + kStatusDigits || line[kDigits + kStatusDigits] == ' ');
  if (!good) {
    return NoAnswer("it does not begin as HTTP does", line);
  }
  status_ = static_cast<int>(ParseNumber(line.substr(kDigits, kStatusDigits)).value_or(0));
  if (status_ < kFirstFinal || status_ > kLastStatus) {
    return NoAnswer("its status is none that ends a request", line);
  }
  for (size_t at = line.size() + kEndOfLine.size(); at < head.size();) {
    const std::string_view field = head.substr(at, head.find(kEndOfLine, at) - at);
    GANTRY_CHECK_OK(ReadField(field));
    at += field.size() + kEndOfLine.size();
  }
  if (!length_ && status_ != kNoContent) {
    return NoAnswer("it does not say how long it is");
  }
  return {};
}

Result<std::optional<HttpAnswer>> HttpAnswerReader::Next() {
  if (head_ == 0) {
    const size_t end = buffer_.find(kEndOfHead);
    if (std::min(end, buffer_.size()) > kMaxHttpHead) {
      return NoAnswer(Format("its head has more than {} bytes", kMaxHttpHead));
    }
    if (end == std::string::npos) {
      return std::nullopt;
    }
    GANTRY_CHECK_OK(ReadHead(std::string_view(buffer_).substr(0, end + kEndOfLine.size())));
    head_ = end + kEndOfHead.size();
  }
  // Source: RFC 9112, 6.3: a 204 has no body, whatever its head says.
  const size_t length = status_ == kNoContent ? 0 : length_.value_or(0);
  if (buffer_.size() - head_ < length) {
    return std::nullopt;
  }
  if (buffer_.size() - head_ > length) {
    return NoAnswer("there is more behind it");
  }
  return HttpAnswer{.status = status_, .body = buffer_.substr(head_, length)};
}

Result<HttpAnswer> AskHttp(ControlSocket& socket, const HttpRequest& request, Deadline deadline) {
  GANTRY_CHECK_OK(socket.Send(TextOf(request), request.fds, deadline));
  HttpAnswerReader reader;
  while (true) {
    GANTRY_CHECK_OK(socket.Receive(reader.buffer(), deadline));
    GANTRY_TRY(std::optional<HttpAnswer> answer, reader.Next());
    if (answer) {
      return *std::move(answer);
    }
  }
}

}  // namespace gantry::vmm
