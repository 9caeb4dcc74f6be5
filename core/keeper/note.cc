// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/note.h"

#include <time.h>
#include <unistd.h>

#include <array>

namespace gantry::keeper {

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void NoteLine(std::string_view line) {
  const time_t seconds = time(nullptr);
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> stamp{};
  strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::string text = std::string(stamp.data()).append(" keeper: ").append(line).append("\n");
  // A log that cannot be written must not stop the keeper.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace gantry::keeper
