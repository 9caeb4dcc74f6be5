// SPDX-License-Identifier: Apache-2.0
//
// What containerd writes into the stdin, stdout and stderr fields of Create and
// Exec, taken apart. The scheme of stdout decides what the streams are.
// Source: containerd 2.1.9, cmd/containerd-shim-runc-v2/process/io.go.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>

namespace gantry::io {

/// The fields as they came.
struct StdioPaths {
  std::string in;
  std::string out;
  std::string err;
  bool terminal = false;
};

enum class StdioKind {
  /// No stream at all: /dev/null three times.
  kNone,
  kFifo,
  /// `file:///path`: stdout and stderr are appended to one file.
  kFile,
  /// `binary:///path?k=v`: a program of the operator's reads the output.
  kBinary,
  /// The same, but it must say that it is ready.
  kBinaryV2,
  /// `ttrpc+unix:///socket?streaming_id=...`: streams over the sandbox's API.
  kStreaming,
};

/// The fields understood. Only what belongs to `kind` is set; with a terminal
/// there is no `err`.
struct StdioUri {
  StdioKind kind = StdioKind::kNone;
  /// kFifo: paths; kStreaming: ids of streams. Empty: there is no such stream.
  std::string in;
  std::string out;
  std::string err;
  /// kFile: the file; kBinary and kBinaryV2: the program.
  std::string path;
  /// kBinary and kBinaryV2: the query, decoded, sorted by key, the first value
  /// of each key.
  std::vector<std::pair<std::string, std::string>> query;
};

/// Whether a program of the operator's reads the output.
inline bool IsBinary(const StdioUri& uri) {
  return uri.kind == StdioKind::kBinary || uri.kind == StdioKind::kBinaryV2;
}

/// Whether a client of containerd's reads the output, and may go away and come back.
inline bool IsPassedOn(const StdioUri& uri) {
  return uri.kind == StdioKind::kFifo || uri.kind == StdioKind::kStreaming;
}

/// Errors: kInvalidArgument for a scheme that is none of the above, a malformed
/// escape, a relative path, a NUL byte, or a text longer than 4096 characters.
Result<StdioUri> ParseStdio(const StdioPaths& paths);

/// `%41` is `A`; with `plus_is_space` a `+` is a blank, as in a query.
/// Errors: kInvalidArgument for `%` without two hex digits behind it.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space);

}  // namespace gantry::io
