// SPDX-License-Identifier: Apache-2.0
#include "core/os/systemd_bus.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

// NOLINTBEGIN(readability-identifier-naming): as the library names them. Only declared
// here: its headers are of a package that the build would need for these alone.
extern "C" {
struct sd_bus;
struct sd_bus_message;

struct sd_bus_error {
  const char* name;
  const char* message;
  int need_free;
};
}

// NOLINTEND(readability-identifier-naming)

namespace gantry::os {
namespace {

constexpr char kLibrary[] = "libsystemd.so.0";
constexpr char kManager[] = "org.freedesktop.systemd1";
constexpr char kManagerPath[] = "/org/freedesktop/systemd1";
constexpr char kManagerInterface[] = "org.freedesktop.systemd1.Manager";
constexpr char kScopeInterface[] = "org.freedesktop.systemd1.Scope";
/// Root's own door, for a node or a moment without a bus. Source: systemd, dbus.c.
constexpr char kPrivateAddress[] = "unix:path=/run/systemd/private";
constexpr char kBooted[] = "/run/systemd/system";
constexpr uint64_t kAnswerUs = 5'000'000;

/// The calls of the library that are made here, under their own names.
struct Library {
  int (*sd_bus_open_system)(sd_bus**);
  int (*sd_bus_new)(sd_bus**);
  int (*sd_bus_set_address)(sd_bus*, const char*);
  int (*sd_bus_start)(sd_bus*);
  sd_bus* (*sd_bus_flush_close_unref)(sd_bus*);
  int (*sd_bus_message_new_method_call)(sd_bus*, sd_bus_message**, const char*, const char*,
                                        const char*, const char*);
  int (*sd_bus_message_append)(sd_bus_message*, const char*, ...);
  int (*sd_bus_message_append_array)(sd_bus_message*, char, const void*, size_t);
  int (*sd_bus_message_open_container)(sd_bus_message*, char, const char*);
  int (*sd_bus_message_close_container)(sd_bus_message*);
  int (*sd_bus_message_read)(sd_bus_message*, const char*, ...);
  sd_bus_message* (*sd_bus_message_unref)(sd_bus_message*);
  int (*sd_bus_call)(sd_bus*, sd_bus_message*, uint64_t, sd_bus_error*, sd_bus_message**);
  int (*sd_bus_get_property_string)(sd_bus*, const char*, const char*, const char*, const char*,
                                    sd_bus_error*, char**);
  void (*sd_bus_error_free)(sd_bus_error*);
};

std::unexpected<Error> NoLibrary() {
  const char* why = dlerror();
  return Fail(Code::kUnavailable, "ask systemd: load {}: {}; install libsystemd", kLibrary,
              why == nullptr ? "unknown" : why);
}

template <class Function>
bool Find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

Result<Library> Load() {
  void* from = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) {
    return NoLibrary();
  }
  Library out{};
#define GANTRY_FIND(name) Find(from, #name, out.name)
  const bool all =
      GANTRY_FIND(sd_bus_open_system) && GANTRY_FIND(sd_bus_new) &&
      GANTRY_FIND(sd_bus_set_address) && GANTRY_FIND(sd_bus_start) &&
      GANTRY_FIND(sd_bus_flush_close_unref) && GANTRY_FIND(sd_bus_message_new_method_call) &&
      GANTRY_FIND(sd_bus_message_append) && GANTRY_FIND(sd_bus_message_append_array) &&
      GANTRY_FIND(sd_bus_message_open_container) && GANTRY_FIND(sd_bus_message_close_container) &&
      GANTRY_FIND(sd_bus_message_read) && GANTRY_FIND(sd_bus_message_unref) &&
      GANTRY_FIND(sd_bus_call) && GANTRY_FIND(sd_bus_get_property_string) &&
      GANTRY_FIND(sd_bus_error_free);
#undef GANTRY_FIND
  if (!all) {
    return NoLibrary();
  }
  return out;
}

Result<const Library*> TheLibrary() {
  static const Result<Library> library = Load();
  if (!library) {
    return std::unexpected(library.error());
  }
  return &*library;
}

struct Unref {
  const Library* library = nullptr;

  void operator()(sd_bus* bus) const { library->sd_bus_flush_close_unref(bus); }

  void operator()(sd_bus_message* message) const { library->sd_bus_message_unref(message); }
};

using MessagePtr = std::unique_ptr<sd_bus_message, Unref>;

std::unexpected<Error> Unavailable(std::unexpected<Error> error) {
  error.error().code = Code::kUnavailable;
  return error;
}

std::unexpected<Error> Unbuilt(int status) {
  return FailErrno(-status, "ask systemd: build the message");
}

/// A connection for one question or two. Not for use after its library's end: there is none.
class Bus {
 public:
  static Result<Bus> Open() {
    GANTRY_TRY(const Library* library, TheLibrary());
    sd_bus* bus = nullptr;
    int status = library->sd_bus_open_system(&bus);
    if (status < 0) {
      status = OpenPrivate(*library, bus);
    }
    Bus out(library, bus);
    if (status < 0) {
      return Unavailable(
          FailErrno(-status, "ask systemd: connect to the system bus or {}", kPrivateAddress));
    }
    return out;
  }

  const Library& library() const { return *bus_.get_deleter().library; }

  Result<MessagePtr> Message(const char* method) {
    sd_bus_message* message = nullptr;
    const int status = library().sd_bus_message_new_method_call(
        bus_.get(), &message, kManager, kManagerPath, kManagerInterface, method);
    MessagePtr out(message, bus_.get_deleter());
    if (status < 0) {
      return Unbuilt(status);
    }
    return out;
  }

  Result<MessagePtr> Call(sd_bus_message* message, std::string_view what) {
    sd_bus_error error{};
    sd_bus_message* answer = nullptr;
    const int status = library().sd_bus_call(bus_.get(), message, kAnswerUs, &error, &answer);
    MessagePtr out(answer, bus_.get_deleter());
    if (status < 0) {
      return Failed(error, status, what);
    }
    return out;
  }

  Result<std::string> Property(const char* path, const char* name, std::string_view what) {
    sd_bus_error error{};
    char* text = nullptr;
    const int status = library().sd_bus_get_property_string(bus_.get(), kManager, path,
                                                            kScopeInterface, name, &error, &text);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    if (status < 0) {
      return Failed(error, status, what);
    }
    return std::string(text);
  }

 private:
  Bus(const Library* library, sd_bus* bus) : bus_(bus, Unref{library}) {}

  static int OpenPrivate(const Library& library, sd_bus*& bus) {
    int status = library.sd_bus_new(&bus);
    if (status >= 0) {
      status = library.sd_bus_set_address(bus, kPrivateAddress);
    }
    return status < 0 ? status : library.sd_bus_start(bus);
  }

  std::unexpected<Error> Failed(sd_bus_error& error, int status, std::string_view what) {
    const std::string name = error.name == nullptr ? "" : error.name;
    const std::string text = error.message == nullptr ? std::string(strerrordesc_np(-status))
                                                      : std::string(error.message);
    library().sd_bus_error_free(&error);
    if (name == "org.freedesktop.systemd1.NoSuchUnit" ||
        name == "org.freedesktop.DBus.Error.UnknownObject" ||
        name == "org.freedesktop.DBus.Error.UnknownInterface") {
      return Fail(Code::kNotFound, "{}: systemd: {}", what, text);
    }
    const bool refused = status == -EINVAL || status == -EROFS || status == -EDOM;
    return Fail(refused ? Code::kInvalidArgument : Code::kUnavailable, "{}: systemd: {}", what,
                text);
  }

  std::unique_ptr<sd_bus, Unref> bus_;
};

/// One `(sv)`.
int Append(const Library& library, sd_bus_message* message, const UnitProperty& property) {
  int status = library.sd_bus_message_open_container(message, 'r', "sv");
  if (status < 0) {
    return status;
  }
  if (const auto* number = std::get_if<uint64_t>(&property.value)) {
    status = library.sd_bus_message_append(message, "sv", property.name.c_str(), "t", *number);
  } else {
    const auto& bytes = std::get<std::vector<uint8_t>>(property.value);
    status = library.sd_bus_message_append(message, "s", property.name.c_str());
    if (status >= 0) {
      status = library.sd_bus_message_open_container(message, 'v', "ay");
    }
    if (status >= 0) {
      status = library.sd_bus_message_append_array(message, 'y', bytes.data(), bytes.size());
    }
    if (status >= 0) {
      status = library.sd_bus_message_close_container(message);
    }
  }
  return status < 0 ? status : library.sd_bus_message_close_container(message);
}

int AppendAll(const Library& library, sd_bus_message* message, const std::string& unit,
              const std::vector<UnitProperty>& properties) {
  constexpr int kRuntime = 1;
  int status = library.sd_bus_message_append(message, "sb", unit.c_str(), kRuntime);
  if (status >= 0) {
    status = library.sd_bus_message_open_container(message, 'a', "(sv)");
  }
  for (const UnitProperty& property : properties) {
    if (status >= 0) {
      status = Append(library, message, property);
    }
  }
  return status < 0 ? status : library.sd_bus_message_close_container(message);
}

}  // namespace

bool HasSystemd() { return Exists(kBooted); }

Result<std::string> ControlGroupOf(const std::string& scope) {
  const std::string what = Format("find scope '{}'", scope);
  GANTRY_TRY(Bus bus, Bus::Open());
  GANTRY_TRY(const MessagePtr question, bus.Message("GetUnit"));
  const int built = bus.library().sd_bus_message_append(question.get(), "s", scope.c_str());
  if (built < 0) {
    return Unbuilt(built);
  }
  GANTRY_TRY(const MessagePtr answer, bus.Call(question.get(), what));
  const char* path = nullptr;
  if (bus.library().sd_bus_message_read(answer.get(), "o", &path) < 0) {
    return Fail(Code::kUnavailable, "{}: systemd's answer is no path of an object", what);
  }
  return bus.Property(path, "ControlGroup", what);
}

Status SetUnitProperties(const std::string& unit, const std::vector<UnitProperty>& properties) {
  GANTRY_TRY(Bus bus, Bus::Open());
  GANTRY_TRY(const MessagePtr message, bus.Message("SetUnitProperties"));
  const int built = AppendAll(bus.library(), message.get(), unit, properties);
  if (built < 0) {
    return Unbuilt(built);
  }
  const auto answer = bus.Call(message.get(), Format("set properties of '{}'", unit));
  return answer ? Status() : std::unexpected(answer.error());
}

}  // namespace gantry::os
