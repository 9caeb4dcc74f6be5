// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gantry::wasm {

/// A bundle with an empty root file system, removed with all in it.
class TestRoot {
 public:
  TestRoot();
  ~TestRoot();
  TestRoot(const TestRoot&) = delete;
  TestRoot& operator=(const TestRoot&) = delete;

  const std::string& bundle() const { return bundle_; }

  std::string rootfs() const { return bundle_ + "/rootfs"; }

  /// A file in the root, with the folders before it.
  void Write(const std::string& name, const std::string& text, int mode = 0644) const;

 private:
  std::string bundle_;
};

}  // namespace gantry::wasm
