// SPDX-License-Identifier: Apache-2.0
//
// Of a build without gantry-wasm-fetch: modules are files of images.
#include "plugins/wasm/launch.h"

namespace gantry::wasm {

FindInImage MakeFindInImage() { return nullptr; }

FindDigests MakeFindDigests() { return nullptr; }

}  // namespace gantry::wasm
