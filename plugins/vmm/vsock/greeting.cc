// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/greeting.h"

#include <algorithm>
#include <limits>

namespace gantry::vmm::vsock {
namespace {

constexpr std::string_view kWord = "CONNECT ";
constexpr uint64_t kMaxPort = std::numeric_limits<uint32_t>::max();

bool IsSame(char one, char capital) {
  return one == capital || (one >= 'a' && one <= 'z' && one - 'a' + 'A' == capital);
}

bool BeginsWithWord(std::string_view text) {
  const size_t count = std::min(text.size(), kWord.size());
  return std::equal(text.begin(), text.begin() + static_cast<ptrdiff_t>(count), kWord.begin(),
                    IsSame);
}

bool IsDigit(char one) { return one >= '0' && one <= '9'; }

}  // namespace

bool MayBecomeGreeting(std::string_view begin) {
  return begin.size() < kMaxGreeting && BeginsWithWord(begin) &&
         (begin.size() <= kWord.size() || std::ranges::all_of(begin.substr(kWord.size()), IsDigit));
}

std::optional<uint32_t> ParseGreeting(std::string_view line) {
  if (line.size() <= kWord.size() || line.size() >= kMaxGreeting || !BeginsWithWord(line)) {
    return std::nullopt;
  }
  constexpr uint64_t kTen = 10;
  uint64_t port = 0;
  for (const char one : line.substr(kWord.size())) {
    if (!IsDigit(one)) {
      return std::nullopt;
    }
    port = port * kTen + static_cast<uint64_t>(one - '0');
  }
  return port <= kMaxPort ? std::optional(static_cast<uint32_t>(port)) : std::nullopt;
}

}  // namespace gantry::vmm::vsock
