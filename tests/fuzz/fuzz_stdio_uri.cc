// SPDX-License-Identifier: Apache-2.0
//
// The stdio fields of Create and Exec; lines of the input are stdin, stdout, stderr.
#include <string>

#include "core/io/uri.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

std::string TakeLine(std::string_view& input) {
  const std::string_view line = input.substr(0, input.find('\n'));
  input.remove_prefix(std::min(line.size() + 1, input.size()));
  return std::string(line);
}

}  // namespace

void FuzzOne(std::string_view input) {
  io::StdioPaths paths;
  paths.terminal = TakeByte(input) % 2 == 1;
  paths.in = TakeLine(input);
  paths.out = TakeLine(input);
  paths.err = TakeLine(input);
  const Result<io::StdioUri> uri = io::ParseStdio(paths);
  if (!uri) {
    Require(uri.error().code == Code::kInvalidArgument, "what is wrong is the caller's fault");
    return;
  }
  Require(!paths.terminal || uri->err.empty(), "a terminal has no stderr");
  const bool has_path = uri->kind == io::StdioKind::kFile || uri->kind == io::StdioKind::kBinary ||
                        uri->kind == io::StdioKind::kBinaryV2;
  Require(!has_path || uri->path.starts_with('/'), "a file or program is absolute");
}

}  // namespace gantry::fuzz
