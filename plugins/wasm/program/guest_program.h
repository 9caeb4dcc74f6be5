// SPDX-License-Identifier: Apache-2.0
//
// A program that runs guests, whatever engine it is linked with: it is called as gantry-init is
// (docs/gantry-init.md), with the words of words.h beside; or with the word `describe` alone, and
// then says which engine it has.
#pragma once

#include "plugins/wasm/program/guest.h"

namespace gantry::wasm {

/// The whole of main(): its exit code. As `init::RunGatedProgram`.
int RunGuestProgram(int argc, char** argv, const GuestEngine& engine);

}  // namespace gantry::wasm
