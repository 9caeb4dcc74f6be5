// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/arguments.h"

#include <fcntl.h>
#include <sys/un.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include <gantry/number.h>

namespace gantry::wasm::fetch {
namespace {

/// The number behind `word`, from `least` to `most`.
Result<int64_t> NumberOf(const std::string& word, const std::string& value, int64_t least,
                         int64_t most) {
  const auto number = ParseNumber(value);
  if (!number || *number < least || *number > most) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}': not a number from {} to {}", word,
                least, most);
  }
  return *number;
}

Status ReadDescriptor(const std::string& word, const std::string& value, int& fd) {
  GANTRY_TRY(const int64_t number, NumberOf(word, value, 3, INT_MAX));
  if (::fcntl(static_cast<int>(number), F_GETFD) < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}': not an open descriptor", word);
  }
  fd = static_cast<int>(number);
  return {};
}

Status ReadWord(const std::string& word, FetchArguments& out) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  if (name == "--address") {
    out.address = value;
  } else if (name == "--namespace") {
    out.ns = value;
  } else if (name == "--container") {
    out.request.container = value;
  } else if (name == "--image") {
    out.request.image = value;
  } else if (name == "--program") {
    out.request.program = value;
  } else if (name == "--max-bytes") {
    GANTRY_TRY(const int64_t number, NumberOf(word, value, 1, INT64_MAX));
    out.request.max_bytes = static_cast<uint64_t>(number);
  } else if (name == "--limit-ms") {
    GANTRY_TRY(const int64_t number, NumberOf(word, value, 1, INT_MAX));
    out.limit = std::chrono::milliseconds(number);
  } else if (name == "--result") {
    return ReadDescriptor(word, value, out.result);
  } else if (name == "--module") {
    return ReadDescriptor(word, value, out.module);
  } else if (name == "--digests") {
    return ReadDescriptor(word, value, out.digests);
  } else {
    return Fail(Code::kInvalidArgument, "read arguments: '{}' is not known", word);
  }
  return {};
}

}  // namespace

const char* FetchUsage() {
  return "usage: gantry-wasm-fetch --address=PATH --namespace=NAME --container=ID|--image=NAME\n"
         "                         --max-bytes=N --result=FD --module=FD [--program=PATH]\n"
         "                         [--limit-ms=N]\n"
         "       gantry-wasm-fetch --address=PATH --result=FD --digests=FD [--limit-ms=N]\n";
}

Result<FetchArguments> ReadFetchArguments(const std::vector<std::string>& words) {
  FetchArguments out;
  for (const std::string& word : words) {
    GANTRY_CHECK_OK(ReadWord(word, out));
  }
  if (!out.address.starts_with('/') || out.address.size() >= sizeof(sockaddr_un::sun_path)) {
    return Fail(Code::kInvalidArgument,
                "read arguments: --address='{}': not the absolute path of a UNIX socket, of less "
                "than {} bytes",
                out.address, sizeof(sockaddr_un::sun_path));
  }
  if (out.result < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: --result is missing");
  }
  const bool of_module = !out.ns.empty() && out.request.max_bytes != 0 && out.module >= 0 &&
                         out.request.container.empty() != out.request.image.empty();
  if (out.digests < 0 && !of_module) {
    return Fail(Code::kInvalidArgument,
                "read arguments: one of --namespace, --container or --image, --max-bytes and "
                "--module is missing");
  }
  return out;
}

}  // namespace gantry::wasm::fetch
