// SPDX-License-Identifier: Apache-2.0
//
// gantryctl, the operator's tool.
#include <iostream>
#include <string>
#include <vector>

#include "core/ctl/commands.h"

int main(int argc, char** argv) {
  return gantry::ctl::RunCommand(std::vector<std::string>(argv + 1, argv + argc), std::cout,
                                 std::cerr);
}
