// SPDX-License-Identifier: Apache-2.0
//
// The library waits by itself for a peer that does not say hello, longer than any call here may
// take: so connecting is driven from here until it is ready.
#include "core/os/sd_bus.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include <gantry/format.h>

namespace gantry::os {
namespace {

constexpr char kLibrary[] = "libsystemd.so.0";
constexpr char kManager[] = "org.freedesktop.systemd1";
constexpr char kManagerPath[] = "/org/freedesktop/systemd1";
constexpr char kManagerInterface[] = "org.freedesktop.systemd1.Manager";
constexpr char kScopeInterface[] = "org.freedesktop.systemd1.Scope";
constexpr char kPropertiesInterface[] = "org.freedesktop.DBus.Properties";
/// Root's own door, for a node or a moment without a bus. Source: systemd, dbus.c.
constexpr char kPrivateAddress[] = "unix:path=/run/systemd/private";

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

Result<SdBusLibrary> Load() {
  void* from = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) {
    return NoLibrary();
  }
  SdBusLibrary out{};
#define GANTRY_FIND(name) Find(from, #name, out.name)
  const bool all =
      GANTRY_FIND(sd_bus_open_system) && GANTRY_FIND(sd_bus_new) &&
      GANTRY_FIND(sd_bus_set_address) && GANTRY_FIND(sd_bus_start) &&
      GANTRY_FIND(sd_bus_is_ready) && GANTRY_FIND(sd_bus_process) && GANTRY_FIND(sd_bus_wait) &&
      GANTRY_FIND(sd_bus_close) && GANTRY_FIND(sd_bus_unref) &&
      GANTRY_FIND(sd_bus_match_signal_async) && GANTRY_FIND(sd_bus_message_new_method_call) &&
      GANTRY_FIND(sd_bus_message_append) && GANTRY_FIND(sd_bus_message_append_array) &&
      GANTRY_FIND(sd_bus_message_open_container) && GANTRY_FIND(sd_bus_message_close_container) &&
      GANTRY_FIND(sd_bus_message_read) && GANTRY_FIND(sd_bus_message_unref) &&
      GANTRY_FIND(sd_bus_call) && GANTRY_FIND(sd_bus_error_free);
#undef GANTRY_FIND
  if (!all) {
    return NoLibrary();
  }
  return out;
}

Result<const SdBusLibrary*> TheLibrary() {
  static const Result<SdBusLibrary> library = Load();
  if (!library) {
    return std::unexpected(library.error());
  }
  return &*library;
}

bool IsNoUnit(std::string_view name) {
  return name == "org.freedesktop.systemd1.NoSuchUnit" ||
         name == "org.freedesktop.DBus.Error.UnknownObject" ||
         name == "org.freedesktop.DBus.Error.UnknownInterface";
}

Code CodeOf(std::string_view name, int status) {
  if (IsNoUnit(name)) {
    return Code::kNotFound;
  }
  if (name == "org.freedesktop.systemd1.UnitExists") {
    return Code::kAlreadyExists;
  }
  const bool refused = status == -EINVAL || status == -EROFS || status == -EDOM;
  return refused ? Code::kInvalidArgument : Code::kUnavailable;
}

}  // namespace

/// How the jobs of one unit have ended, by their objects.
struct SystemdConnection::Jobs {
  const SdBusLibrary* library = nullptr;
  std::string unit{};
  std::map<std::string, std::string, std::less<>> results{};

  static int OnRemoved(sd_bus_message* message, void* self, sd_bus_error*) {
    auto* const jobs = static_cast<Jobs*>(self);
    uint32_t number = 0;
    const char* path = nullptr;
    const char* unit = nullptr;
    const char* result = nullptr;
    if (jobs->library->sd_bus_message_read(message, "uoss", &number, &path, &unit, &result) >= 0 &&
        jobs->unit == unit) {
      jobs->results.insert_or_assign(path, result);
    }
    return 0;
  }
};

void SystemdConnection::JobsDeleter::operator()(Jobs* jobs) const { delete jobs; }

std::unexpected<Error> NotBuilt(int status) {
  return FailErrno(-status, "ask systemd: build the message");
}

Result<SystemdConnection> SystemdConnection::Open(Deadline by) {
  GANTRY_TRY(const SdBusLibrary* library, TheLibrary());
  SystemdConnection out(library, by);
  int status = out.Connect();
  if (status >= 0) {
    status = out.AwaitReady();
  }
  if (status < 0) {
    auto failed =
        FailErrno(-status, "ask systemd: connect to the system bus or {}", kPrivateAddress);
    failed.error().code = Code::kUnavailable;
    return failed;
  }
  return out;
}

int SystemdConnection::Connect() {
  sd_bus* bus = nullptr;
  const int status = library().sd_bus_open_system(&bus);
  bus_.reset(bus);
  return status < 0 ? ConnectByRootsDoor() : status;
}

int SystemdConnection::ConnectByRootsDoor() {
  is_bus_ = false;
  sd_bus* bus = nullptr;
  int status = library().sd_bus_new(&bus);
  bus_.reset(bus);
  if (status >= 0) {
    status = library().sd_bus_set_address(bus, kPrivateAddress);
  }
  return status < 0 ? status : library().sd_bus_start(bus);
}

uint64_t SystemdConnection::LeftUs() const {
  return static_cast<uint64_t>(std::chrono::microseconds(Left(by_)).count());
}

int SystemdConnection::ProcessOnce() {
  int status = library().sd_bus_process(bus_.get(), nullptr);
  if (status == 0) {
    const uint64_t left = LeftUs();
    status = left == 0 ? -ETIMEDOUT : library().sd_bus_wait(bus_.get(), left);
  }
  return status == -EINTR ? 0 : status;
}

int SystemdConnection::AwaitReady() {
  while (true) {
    const int ready = library().sd_bus_is_ready(bus_.get());
    if (ready != 0) {
      return ready;
    }
    if (const int status = ProcessOnce(); status < 0) {
      return status;
    }
  }
}

Result<SdBusMessage> SystemdConnection::Message(const char* method) {
  sd_bus_message* message = nullptr;
  const int status = library().sd_bus_message_new_method_call(
      bus_.get(), &message, kManager, kManagerPath, kManagerInterface, method);
  SdBusMessage out(message, bus_.get_deleter());
  if (status < 0) {
    return NotBuilt(status);
  }
  return out;
}

Result<SdBusMessage> SystemdConnection::Call(sd_bus_message* message, std::string_view what) {
  sd_bus_error error{};
  sd_bus_message* answer = nullptr;
  // 0 would be the library's own limit.
  const uint64_t limit = std::max<uint64_t>(LeftUs(), 1);
  const int status = library().sd_bus_call(bus_.get(), message, limit, &error, &answer);
  SdBusMessage out(answer, bus_.get_deleter());
  if (status < 0) {
    return Failed(error, status, what);
  }
  return out;
}

Result<std::string> SystemdConnection::ScopeProperty(const char* path, const char* name,
                                                     std::string_view what) {
  sd_bus_message* message = nullptr;
  int status = library().sd_bus_message_new_method_call(bus_.get(), &message, kManager, path,
                                                        kPropertiesInterface, "Get");
  const SdBusMessage question(message, bus_.get_deleter());
  if (status >= 0) {
    status = library().sd_bus_message_append(message, "ss", kScopeInterface, name);
  }
  if (status < 0) {
    return NotBuilt(status);
  }
  GANTRY_TRY(const SdBusMessage answer, Call(message, what));
  const char* text = nullptr;
  if (library().sd_bus_message_read(answer.get(), "v", "s", &text) < 0) {
    return Fail(Code::kUnavailable, "{}: systemd's answer is no text", what);
  }
  return std::string(text);
}

Status SystemdConnection::WatchJobs(std::string unit) {
  jobs_.reset(new Jobs{.library = &library(), .unit = std::move(unit)});
  // In the order of the messages: it holds before what is called next.
  const int status = library().sd_bus_match_signal_async(
      bus_.get(), nullptr, is_bus_ ? kManager : nullptr, kManagerPath, kManagerInterface,
      "JobRemoved", &Jobs::OnRemoved, nullptr, jobs_.get());
  return status < 0 ? NotBuilt(status) : Status();
}

Result<std::string> SystemdConnection::AwaitJob(sd_bus_message* answer, std::string_view what) {
  const char* path = nullptr;
  if (library().sd_bus_message_read(answer, "o", &path) < 0) {
    return Fail(Code::kUnavailable, "{}: systemd's answer is no job", what);
  }
  while (true) {
    if (const auto ended = jobs_->results.find(path); ended != jobs_->results.end()) {
      return ended->second;
    }
    if (const int status = ProcessOnce(); status < 0) {
      sd_bus_error none{};
      return Failed(none, status, what);
    }
  }
}

std::unexpected<Error> SystemdConnection::Failed(sd_bus_error& error, int status,
                                                 std::string_view what) const {
  const std::string name = error.name == nullptr ? "" : error.name;
  const std::string text =
      error.message == nullptr ? std::string(strerrordesc_np(-status)) : std::string(error.message);
  library().sd_bus_error_free(&error);
  if (status == -ETIMEDOUT) {
    return Fail(Code::kUnavailable, "{}: systemd does not answer ({})", what, text);
  }
  return Fail(CodeOf(name, status), "{}: systemd: {}", what, text);
}

}  // namespace gantry::os
