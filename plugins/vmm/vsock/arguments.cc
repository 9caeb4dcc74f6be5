// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/arguments.h"

#include <fcntl.h>

#include <algorithm>
#include <climits>

#include <gantry/number.h>

namespace gantry::vmm::vsock {
namespace {

/// A name with its port still fits an address of the kernel's.
constexpr size_t kMaxName = 80;
/// Lower ones are the hypervisor's, this machine's and the host's; one of 32 bits is all that a
/// guest has. Source: vsock(7).
constexpr int64_t kFirstCid = 3;
constexpr int64_t kLastCid = UINT32_MAX - int64_t{1};

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
  if (fcntl(static_cast<int>(number), F_GETFD) < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}': not an open descriptor", word);
  }
  fd = static_cast<int>(number);
  return {};
}

Status ReadName(const std::string& word, const std::string& value, std::string& name) {
  if (value.empty() || value.size() > kMaxName || value.find('/') != std::string::npos) {
    return Fail(Code::kInvalidArgument,
                "read arguments: '{}': not the name of a socket, of at most {} bytes", word,
                kMaxName);
  }
  name = value;
  return {};
}

Status ReadWord(const std::string& word, Arguments& out) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  if (name == "--front-end") {
    return ReadDescriptor(word, value, out.front_end);
  }
  if (name == "--hosts") {
    return ReadDescriptor(word, value, out.hosts);
  }
  if (name == "--directory") {
    return ReadDescriptor(word, value, out.directory);
  }
  if (name == "--name") {
    return ReadName(word, value, out.name);
  }
  if (name == "--guest-cid") {
    GANTRY_TRY(const int64_t cid, NumberOf(word, value, kFirstCid, kLastCid));
    out.guest_cid = static_cast<uint64_t>(cid);
    return {};
  }
  if (name == "--streams") {
    GANTRY_TRY(const int64_t streams, NumberOf(word, value, 1, kMaxStreams));
    out.streams = static_cast<size_t>(streams);
    return {};
  }
  if (word == "--reconnect") {
    out.reconnects = true;
    return {};
  }
  return Fail(Code::kInvalidArgument, "read arguments: '{}': not known", word);
}

}  // namespace

const char* Usage() {
  return "usage: gantry-vsock --front-end=FD --hosts=FD --directory=FD --name=NAME "
         "--guest-cid=CID\n"
         "                    [--streams=N] [--reconnect]\n";
}

Result<Arguments> ReadArguments(const std::vector<std::string>& words) {
  Arguments out;
  for (const std::string& word : words) {
    GANTRY_CHECK_OK(ReadWord(word, out));
  }
  const char* missing = out.front_end < 0    ? "--front-end"
                        : out.hosts < 0      ? "--hosts"
                        : out.directory < 0  ? "--directory"
                        : out.name.empty()   ? "--name"
                        : out.guest_cid == 0 ? "--guest-cid"
                                             : nullptr;
  if (missing != nullptr) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}' is missing", missing);
  }
  return out;
}

}  // namespace gantry::vmm::vsock
