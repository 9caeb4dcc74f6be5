// SPDX-License-Identifier: Apache-2.0
//
// A library that a plugin needs and a node does not have.
extern "C" __attribute__((visibility("default"))) int gantry_test_absent();

int gantry_test_absent() { return 0; }
