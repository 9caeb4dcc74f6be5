// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/seed.h"

#include <cstdlib>
#include <iostream>
#include <random>

namespace gantry::fault {
namespace {

unsigned ChooseSeed() {
  const char* const given = std::getenv("GANTRY_FAULT_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given))
                                         : std::random_device()() % 1'000'000;
  std::cout << "GANTRY_FAULT_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace

unsigned Seed() {
  static const unsigned seed = ChooseSeed();
  return seed;
}

}  // namespace gantry::fault
