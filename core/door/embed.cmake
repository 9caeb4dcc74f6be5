# SPDX-License-Identifier: Apache-2.0
# cmake -DFILE=set -DSOURCE=file.cc -P embed.cmake: a source with the file's bytes, for ServedFiles().
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
file(WRITE ${SOURCE} "// SPDX-License-Identifier: Apache-2.0
// Made at build time from ${FILE}.
#include \"core/door/descriptors.h\"

namespace gantry::door {

std::string_view ServedFiles() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace gantry::door
")
