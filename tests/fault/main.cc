// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong at each step that gantry's engine takes: see harness/fault_test.h.
#include <filesystem>
#include <iostream>

#include <gtest/gtest.h>

#include "tests/fault/harness/faults.h"
#include "tests/fault/harness/report.h"
#include "tests/harness/run_tests.h"
#include "tests/harness/settings.h"

namespace {

class ShowReport : public ::testing::Environment {
 public:
  void TearDown() override { std::cout << gantry::fault::Report::Get().Text(); }
};

}  // namespace

int main(int argc, char** argv) {
  gantry::e2e::Settings settings = gantry::e2e::ReadSettings();
  const std::string file = settings.root + "/faults";
  const gantry::fault::Faults faults(file);
  settings.env = {
      {gantry::fault::kFileVariable, file},
      {"LD_PRELOAD",
       std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libgantry_fault_points.so"},
  };
  ::testing::AddGlobalTestEnvironment(new ShowReport);
  return gantry::e2e::RunTests(settings, argc, argv);
}
