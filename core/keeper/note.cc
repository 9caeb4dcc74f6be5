// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/note.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include "core/log/printable.h"

namespace gantry::keeper {

namespace {

/// A log file must not fill the disk of a node whose engine crashes for days.
void KeepSmall() {
  constexpr off_t kMostBytes = 4 << 20;
  struct stat info{};
  if (fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > kMostBytes) {
    // The file is open for appending: it goes on at its new end.
    [[maybe_unused]] const int cut = ftruncate(STDERR_FILENO, 0);
  }
}

}  // namespace

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void NoteLine(std::string_view line) {
  KeepSmall();
  const time_t seconds = time(nullptr);
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> stamp{};
  strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::string text =
      std::string(stamp.data()).append(" keeper: ").append(log::Printable(line)).append("\n");
  // A log that cannot be written must not stop the keeper.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace gantry::keeper
