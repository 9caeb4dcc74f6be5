// SPDX-License-Identifier: Apache-2.0
//
// A connection to systemd's manager for a few questions, over sd-bus of libsystemd. The library is
// loaded when systemd is asked for the first time: a node without systemd needs none, and a D-Bus
// client of our own, or a program for each question, would be more to get wrong than its dozen
// calls. All waiting is bounded by the connection's deadline, also where systemd is silent.
// Source: sd-bus(3), org.freedesktop.systemd1(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>

// NOLINTBEGIN(readability-identifier-naming): as the library names them. Only declared
// here: its headers are of a package that the build would need for these alone.
extern "C" {
struct sd_bus;
struct sd_bus_message;
struct sd_bus_slot;

struct sd_bus_error {
  const char* name;
  const char* message;
  int need_free;
};
}

// NOLINTEND(readability-identifier-naming)

namespace gantry::os {

/// The calls of the library that are made here, under their own names.
struct SdBusLibrary {
  using Handler = int (*)(sd_bus_message*, void*, sd_bus_error*);

  int (*sd_bus_open_system)(sd_bus**);
  int (*sd_bus_new)(sd_bus**);
  int (*sd_bus_set_address)(sd_bus*, const char*);
  int (*sd_bus_start)(sd_bus*);
  int (*sd_bus_is_ready)(sd_bus*);
  int (*sd_bus_process)(sd_bus*, sd_bus_message**);
  int (*sd_bus_wait)(sd_bus*, uint64_t);
  void (*sd_bus_close)(sd_bus*);
  sd_bus* (*sd_bus_unref)(sd_bus*);
  int (*sd_bus_match_signal_async)(sd_bus*, sd_bus_slot**, const char*, const char*, const char*,
                                   const char*, Handler, Handler, void*);
  int (*sd_bus_message_new_method_call)(sd_bus*, sd_bus_message**, const char*, const char*,
                                        const char*, const char*);
  int (*sd_bus_message_append)(sd_bus_message*, const char*, ...);
  int (*sd_bus_message_append_array)(sd_bus_message*, char, const void*, size_t);
  int (*sd_bus_message_open_container)(sd_bus_message*, char, const char*);
  int (*sd_bus_message_close_container)(sd_bus_message*);
  int (*sd_bus_message_read)(sd_bus_message*, const char*, ...);
  sd_bus_message* (*sd_bus_message_unref)(sd_bus_message*);
  int (*sd_bus_call)(sd_bus*, sd_bus_message*, uint64_t, sd_bus_error*, sd_bus_message**);
  void (*sd_bus_error_free)(sd_bus_error*);
};

struct SdBusDeleter {
  const SdBusLibrary* library = nullptr;

  void operator()(sd_bus* bus) const {
    // Nothing that has been said waits to be sent: each call has had its answer, or its time.
    library->sd_bus_close(bus);
    library->sd_bus_unref(bus);
  }

  void operator()(sd_bus_message* message) const { library->sd_bus_message_unref(message); }
};

using SdBusMessage = std::unique_ptr<sd_bus_message, SdBusDeleter>;

/// Thread: one. Blocks: each call until the deadline at the latest.
/// Errors of all: kNotFound: no such unit; kAlreadyExists: there is one; kInvalidArgument: systemd
/// refuses a value; kUnavailable: it cannot be asked, or does not answer.
class SystemdConnection {
 public:
  /// Over the system bus, or where there is none by root's own door.
  static Result<SystemdConnection> Open(Deadline by);

  const SdBusLibrary& library() const { return *bus_.get_deleter().library; }

  /// A call of the manager's.
  Result<SdBusMessage> Message(const char* method);
  /// `what`: with which errors begin.
  Result<SdBusMessage> Call(sd_bus_message* message, std::string_view what);
  /// A property of a scope that is text. `path`: the unit's object.
  Result<std::string> ScopeProperty(const char* path, const char* name, std::string_view what);
  /// From now on the ends of the jobs of that unit are seen. Before the call that queues one.
  Status WatchJobs(std::string unit);
  /// Waits for the job that the answer names, and gives its result: "done", "failed", ...
  Result<std::string> AwaitJob(sd_bus_message* answer, std::string_view what);

 private:
  struct Jobs;

  struct JobsDeleter {
    void operator()(Jobs* jobs) const;
  };

  SystemdConnection(const SdBusLibrary* library, Deadline by)
      : by_(by), bus_(nullptr, SdBusDeleter{library}) {}

  int Connect();
  int ConnectByRootsDoor();
  int AwaitReady();
  /// Lets it work once. Errors: as the library has them, -ETIMEDOUT at the deadline.
  int ProcessOnce();
  uint64_t LeftUs() const;
  std::unexpected<Error> Failed(sd_bus_error& error, int status, std::string_view what) const;

  Deadline by_;
  bool is_bus_ = true;
  /// Outlives the connection, which calls it.
  std::unique_ptr<Jobs, JobsDeleter> jobs_;
  std::unique_ptr<sd_bus, SdBusDeleter> bus_;
};

/// Of a message that the library does not take.
std::unexpected<Error> NotBuilt(int status);

}  // namespace gantry::os
