// SPDX-License-Identifier: Apache-2.0
//
// What containerd writes for stdin, stdout and stderr, taken apart. The URI of stdout says of
// which kind all three are, as with containerd's shim for runc; where there is no stdout the
// other streams do.
#include "core/io/uri.h"

#include <algorithm>
#include <map>

namespace gantry::io {

namespace {

/// PATH_MAX: neither the kernel nor containerd has use for more.
constexpr size_t kMaxText = 4096;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct Parts {
  std::string_view scheme;
  /// Behind `scheme://` and before `?`.
  std::string_view rest;
  std::string_view query;
};

Parts Split(std::string_view text) {
  Parts parts;
  const size_t colon = text.find("://");
  if (text.starts_with('/') || colon == std::string_view::npos) {
    parts.rest = text;
    return parts;
  }
  parts.scheme = text.substr(0, colon);
  parts.rest = text.substr(colon + 3);
  const size_t mark = parts.rest.find('?');
  if (mark != std::string_view::npos) {
    parts.query = parts.rest.substr(mark + 1);
    parts.rest = parts.rest.substr(0, mark);
  }
  return parts;
}

Status CheckText(std::string_view text) {
  if (text.size() > kMaxText || text.contains('\0')) {
    return Fail(Code::kInvalidArgument, "check stdio '{}': too long or with a NUL byte",
                text.substr(0, 80));
  }
  return {};
}

/// The path of a URI with an empty authority.
Result<std::string> AbsolutePath(std::string_view encoded, std::string_view whole) {
  GANTRY_TRY(std::string path, PercentDecode(encoded, false));
  if (!path.starts_with('/') || path.contains('\0')) {
    return Fail(Code::kInvalidArgument, "check stdio '{}': not an absolute path", whole);
  }
  return path;
}

/// A plain path is taken as it is; one behind `fifo://` is decoded.
Result<std::string> FifoPath(const std::string& text) {
  if (text.empty()) {
    return text;
  }
  GANTRY_CHECK_OK(CheckText(text));
  const Parts parts = Split(text);
  if (parts.scheme.empty()) {
    if (!text.starts_with('/')) {
      return Fail(Code::kInvalidArgument, "check stdio '{}': not an absolute path", text);
    }
    return text;
  }
  if (parts.scheme != "fifo") {
    return Fail(Code::kInvalidArgument, "check stdio '{}': not a fifo as the other streams", text);
  }
  return AbsolutePath(parts.rest, text);
}

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> values;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (item.empty()) {
      continue;
    }
    const size_t equals = std::min(item.find('='), item.size());
    GANTRY_TRY(std::string key, PercentDecode(item.substr(0, equals), true));
    GANTRY_TRY(std::string value,
               PercentDecode(item.substr(std::min(equals + 1, item.size())), true));
    if (key.contains('\0') || value.contains('\0')) {
      return Fail(Code::kInvalidArgument, "check stdio: a NUL byte in '{}'", item);
    }
    values.emplace(std::move(key), std::move(value));
  }
  return std::vector<std::pair<std::string, std::string>>(values.begin(), values.end());
}

/// The value of `streaming_id`; empty for an empty text.
Result<std::string> StreamId(const std::string& text) {
  if (text.empty()) {
    return text;
  }
  GANTRY_CHECK_OK(CheckText(text));
  GANTRY_TRY(auto query, ParseQuery(Split(text).query));
  const auto found =
      std::ranges::find(query, "streaming_id", &std::pair<std::string, std::string>::first);
  if (found == query.end() || found->second.empty()) {
    return Fail(Code::kInvalidArgument, "check stdio '{}': no streaming_id", text);
  }
  return found->second;
}

Result<StdioUri> ParseFifos(const StdioPaths& paths) {
  StdioUri uri;
  uri.kind = StdioKind::kFifo;
  GANTRY_TRY(uri.in, FifoPath(paths.in));
  GANTRY_TRY(uri.out, FifoPath(paths.out));
  if (!paths.terminal) {
    GANTRY_TRY(uri.err, FifoPath(paths.err));
  }
  return uri;
}

Result<StdioUri> ParseStreams(const StdioPaths& paths) {
  StdioUri uri;
  uri.kind = StdioKind::kStreaming;
  GANTRY_TRY(uri.in, StreamId(paths.in));
  GANTRY_TRY(uri.out, StreamId(paths.out));
  if (!paths.terminal) {
    GANTRY_TRY(uri.err, StreamId(paths.err));
  }
  return uri;
}

}  // namespace

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
      continue;
    }
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      return Fail(Code::kInvalidArgument, "decode '{}': malformed escape", text);
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

Result<StdioUri> ParseStdio(const StdioPaths& paths) {
  if (paths.in.empty() && paths.out.empty() && paths.err.empty()) {
    return StdioUri();
  }
  // As for the stock shim, stdout decides. Where there is none, what there is.
  const std::string& deciding =
      !paths.out.empty() ? paths.out : (!paths.in.empty() ? paths.in : paths.err);
  GANTRY_CHECK_OK(CheckText(deciding));
  const Parts parts = Split(deciding);
  if (parts.scheme.empty() || parts.scheme == "fifo") {
    return ParseFifos(paths);
  }
  if (parts.scheme == "ttrpc+unix" || parts.scheme == "grpc+unix") {
    return ParseStreams(paths);
  }
  StdioUri uri;
  if (parts.scheme == "file") {
    uri.kind = StdioKind::kFile;
  } else if (parts.scheme == "binary") {
    uri.kind = StdioKind::kBinary;
  } else if (parts.scheme == "binary-v2") {
    uri.kind = StdioKind::kBinaryV2;
  } else {
    return Fail(Code::kInvalidArgument, "check stdio '{}': unknown STDIO scheme '{}'", deciding,
                parts.scheme);
  }
  GANTRY_TRY(uri.path, AbsolutePath(parts.rest, deciding));
  if (uri.kind != StdioKind::kFile) {
    GANTRY_TRY(uri.query, ParseQuery(parts.query));
  }
  return uri;
}

}  // namespace gantry::io
