// SPDX-License-Identifier: Apache-2.0
//
// What QEMU says on its monitor: cut into lines, in any portions, and what each line is taken for.
#include <algorithm>

#include "plugins/vmm/hypervisor/qemu/qmp_message.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

constexpr size_t kMostBytes = 4096;

using vmm::QmpLines;
using vmm::QmpMessage;

/// All lines up to the first that is refused.
std::string LinesOf(std::string_view input, size_t portion) {
  QmpLines lines(kMostBytes);
  std::string all;
  while (true) {
    const auto line = lines.Next();
    if (!line) {
      return all;
    }
    if (*line) {
      Require((*line)->size() <= kMostBytes, "no line is longer than it may be");
      all += **line + "\n";
    } else if (input.empty()) {
      return all;
    } else {
      lines.buffer() += input.substr(0, portion);
      input.remove_prefix(std::min(portion, input.size()));
    }
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t portion = size_t{TakeByte(input)} + 1;
  std::string lines = LinesOf(input, portion);
  Require(lines == LinesOf(input, 1), "lines are the same in any portions");
  for (std::string_view rest = lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const auto message = vmm::ParseQmp(line);
    if (!message) {
      Require(message.error().code == Code::kDataLoss, "what is refused is no message");
    } else if (message->kind == QmpMessage::Kind::kEvent) {
      message->value.dump(-1, ' ', false, nlohmann::json::error_handler_t::strict);
    }
  }
}

}  // namespace gantry::fuzz
