// SPDX-License-Identifier: Apache-2.0
//
// What one listening socket of the keeper stands for.
#pragma once

#include <cstddef>
#include <string>

namespace gantry::keeper {

/// Removed from the file system with the last owner. Thread: the keeper's only one.
struct Place {
  std::string path;
  std::string ns;
  std::string grpc_address;

  /// What its connections take together.
  struct Use {
    size_t connections = 0;
    size_t request_bytes = 0;
    size_t unread_bytes = 0;
    size_t parked = 0;
  };

  mutable Use use{};
  /// Why its calls are not given to an engine; "" while they are.
  mutable std::string left_out{};

  std::string address() const { return "unix://" + path; }

  /// What the next program is handed (state.h).
  void Each(this auto& self, auto&& field) {
    field(1, self.path);
    field(2, self.ns);
    field(3, self.grpc_address);
  }
};

}  // namespace gantry::keeper
