// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pause/pause_image.h"

#include <sys/stat.h>

#include <span>
#include <string>
#include <string_view>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/image/erofs_image.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::gvisor {
namespace {

Result<std::string> PauseImageText() {
  const std::span<const unsigned char> program = PauseProgram();
  const std::string_view content(reinterpret_cast<const char*>(program.data()), program.size());
  return ErofsImage({{"pause", {S_IFREG | 0755, content}},
                     {"dev", {S_IFDIR | 0755, {}}},
                     {"proc", {S_IFDIR | 0755, {}}},
                     {"sys", {S_IFDIR | 0755, {}}},
                     {"tmp", {S_IFDIR | 0755, {}}}});
}

}  // namespace

Result<UniqueFd> PauseImage() {
  // Workers of all pods come here.
  static Mutex mutex;
  static UniqueFd image GANTRY_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (!image) {
    GANTRY_TRY(const std::string text, PauseImageText());
    GANTRY_TRY(image, SealedMemfd("gantry-pause", text, MemfdUse::kRead));
  }
  return ReopenForReading(image);
}

}  // namespace gantry::gvisor
