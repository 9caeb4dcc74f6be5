// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/os/sd_bus_server.h"

#include <dlfcn.h>

#include <cstring>
#include <type_traits>

#include <gantry/format.h>

namespace gantry::os {

const SdBusServer* SdBusServer::Find() {
  static SdBusServer out{};
  void* const from = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) {
    return nullptr;
  }
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(from, name));
    all = all && function != nullptr;
  };
#define GANTRY_FIND(name) find(out.name, #name)
  GANTRY_FIND(sd_bus_new);
  GANTRY_FIND(sd_bus_set_fd);
  GANTRY_FIND(sd_bus_set_server);
  GANTRY_FIND(sd_bus_set_anonymous);
  GANTRY_FIND(sd_bus_set_sender);
  GANTRY_FIND(sd_bus_start);
  GANTRY_FIND(sd_bus_process);
  GANTRY_FIND(sd_bus_wait);
  GANTRY_FIND(sd_bus_close);
  GANTRY_FIND(sd_bus_unref);
  GANTRY_FIND(sd_bus_emit_signal);
  GANTRY_FIND(sd_bus_reply_method_return);
  GANTRY_FIND(sd_bus_reply_method_errorf);
  GANTRY_FIND(sd_bus_message_get_member);
  GANTRY_FIND(sd_bus_message_get_path);
  GANTRY_FIND(sd_bus_message_is_method_call);
  GANTRY_FIND(sd_bus_message_read);
  GANTRY_FIND(sd_bus_message_read_array);
  GANTRY_FIND(sd_bus_message_peek_type);
  GANTRY_FIND(sd_bus_message_enter_container);
  GANTRY_FIND(sd_bus_message_exit_container);
  GANTRY_FIND(sd_bus_message_unref);
#undef GANTRY_FIND
  return all ? &out : nullptr;
}

std::string SdBusServer::ReadText(sd_bus_message* message) const {
  const char* text = nullptr;
  return sd_bus_message_read(message, "s", &text) < 0 ? "" : std::string(text);
}

void SdBusServer::ReadProperties(sd_bus_message* message,
                                 std::map<std::string, std::string>& out) const {
  sd_bus_message_enter_container(message, 'a', "(sv)");
  while (sd_bus_message_enter_container(message, 'r', "sv") > 0) {
    const std::string name = ReadText(message);
    out.insert_or_assign(name, ReadValue(message));
    sd_bus_message_exit_container(message);
  }
  sd_bus_message_exit_container(message);
}

std::string SdBusServer::ReadValue(sd_bus_message* message) const {
  char type = 0;
  const char* contents = nullptr;
  sd_bus_message_peek_type(message, &type, &contents);
  const std::string kind = contents == nullptr ? "" : contents;
  sd_bus_message_enter_container(message, 'v', kind.c_str());
  std::string text;
  if (kind == "t") {
    uint64_t number = 0;
    sd_bus_message_read(message, "t", &number);
    text = number == kNoLimit ? "infinity" : std::to_string(number);
  } else if (kind == "b") {
    int yes = 0;
    sd_bus_message_read(message, "b", &yes);
    text = yes != 0 ? "yes" : "no";
  } else if (kind == "s") {
    text = ReadText(message);
  } else if (kind == "au" || kind == "ay") {
    const void* bytes = nullptr;
    size_t size = 0;
    sd_bus_message_read_array(message, kind[1], &bytes, &size);
    const size_t width = kind == "au" ? sizeof(uint32_t) : 1;
    for (size_t at = 0; at < size; at += width) {
      uint32_t number = 0;
      std::memcpy(&number, static_cast<const char*>(bytes) + at, width);
      text += (at == 0 ? "" : " ") + std::to_string(number);
    }
  } else if (kind == "a(ss)") {
    sd_bus_message_enter_container(message, 'a', "(ss)");
    const char* device = nullptr;
    const char* rights = nullptr;
    while (sd_bus_message_read(message, "(ss)", &device, &rights) > 0) {
      text += Format("{}{} {}", text.empty() ? "" : ",", device, rights);
    }
    sd_bus_message_exit_container(message);
  }
  sd_bus_message_exit_container(message);
  return text;
}

}  // namespace gantry::os
