# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=file -DSOURCE=file.cc -P embed.cmake: a source with the file's
# bytes, for PauseProgram(). Numbers rather than the assembler's .incbin, so that
# every compiler, compiler cache and tool sees what goes into it.
file(READ ${PROGRAM} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
file(WRITE ${SOURCE} "// SPDX-License-Identifier: Apache-2.0
// Made at build time from ${PROGRAM}.
#include \"plugins/gvisor/pause/pause_image.h\"

namespace gantry::gvisor {

std::span<const unsigned char> PauseProgram() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return kBytes;
}

}  // namespace gantry::gvisor
")
