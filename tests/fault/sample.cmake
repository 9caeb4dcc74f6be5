# SPDX-License-Identifier: Apache-2.0
# Read by ctest, after it has asked the program for its tests.
if(fault_tests_TESTS)
  set_tests_properties(
    ${fault_tests_TESTS}
    PROPERTIES ENVIRONMENT "GANTRY_FAULT_EVERY=16;GANTRY_FAULT_SEED=1;ENABLE_CRI_SANDBOXES=1")
endif()
