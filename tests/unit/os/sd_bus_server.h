// SPDX-License-Identifier: Apache-2.0
//
// The calls of libsystemd that a server of D-Bus needs, and reading what it is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

struct sd_bus;
struct sd_bus_message;

namespace gantry::os {

/// As sd_id128_t is passed.
union Id128 {
  uint8_t bytes[16];
  uint64_t words[2];
};

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// NOLINTBEGIN(readability-identifier-naming): as the library names them.
struct SdBusServer {
  int (*sd_bus_new)(sd_bus**);
  int (*sd_bus_set_fd)(sd_bus*, int, int);
  int (*sd_bus_set_server)(sd_bus*, int, Id128);
  int (*sd_bus_set_anonymous)(sd_bus*, int);
  int (*sd_bus_set_sender)(sd_bus*, const char*);
  int (*sd_bus_start)(sd_bus*);
  int (*sd_bus_process)(sd_bus*, sd_bus_message**);
  int (*sd_bus_wait)(sd_bus*, uint64_t);
  void (*sd_bus_close)(sd_bus*);
  sd_bus* (*sd_bus_unref)(sd_bus*);
  int (*sd_bus_emit_signal)(sd_bus*, const char*, const char*, const char*, const char*, ...);
  int (*sd_bus_reply_method_return)(sd_bus_message*, const char*, ...);
  int (*sd_bus_reply_method_errorf)(sd_bus_message*, const char*, const char*, ...);
  const char* (*sd_bus_message_get_member)(sd_bus_message*);
  const char* (*sd_bus_message_get_path)(sd_bus_message*);
  int (*sd_bus_message_is_method_call)(sd_bus_message*, const char*, const char*);
  int (*sd_bus_message_read)(sd_bus_message*, const char*, ...);
  int (*sd_bus_message_read_array)(sd_bus_message*, char, const void**, size_t*);
  int (*sd_bus_message_peek_type)(sd_bus_message*, char*, const char**);
  int (*sd_bus_message_enter_container)(sd_bus_message*, char, const char*);
  int (*sd_bus_message_exit_container)(sd_bus_message*);
  sd_bus_message* (*sd_bus_message_unref)(sd_bus_message*);

  /// Null: the machine has no such library.
  static const SdBusServer* Find();

  std::string ReadText(sd_bus_message* message) const;
  /// `a(sv)`, the values as text.
  void ReadProperties(sd_bus_message* message, std::map<std::string, std::string>& out) const;
  std::string ReadValue(sd_bus_message* message) const;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace gantry::os
