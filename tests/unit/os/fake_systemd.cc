// SPDX-License-Identifier: Apache-2.0
//
// Where the library's client looks for a bus, the library's server answers, as systemd itself does
// at its private socket; what only a bus does (a name for who comes, matches) is answered, too.
#include "tests/unit/os/fake_systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/os/sd_bus_server.h"

namespace gantry::os {
namespace {

constexpr char kManagerPath[] = "/org/freedesktop/systemd1";
constexpr char kManager[] = "org.freedesktop.systemd1.Manager";
constexpr std::string_view kUnitPath = "/org/freedesktop/systemd1/unit/";
constexpr char kNoSuchUnit[] = "org.freedesktop.systemd1.NoSuchUnit";

/// A unit's name as the last part of its object's path: in hexadecimal, which any name is fit for.
std::string ObjectOf(const std::string& unit) {
  std::string path(kUnitPath);
  for (const unsigned char c : unit) {
    path += Format("{:02x}", c);
  }
  return path;
}

std::string UnitOf(std::string_view object) {
  std::string unit;
  if (object.starts_with(kUnitPath)) {
    for (size_t i = kUnitPath.size(); i + 1 < object.size(); i += 2) {
      unit += static_cast<char>(std::stoi(std::string(object.substr(i, 2)), nullptr, 16));
    }
  }
  return unit;
}

}  // namespace

std::unique_ptr<FakeSystemd> FakeSystemd::Begin() {
  const SdBusServer* const library = SdBusServer::Find();
  return library == nullptr ? nullptr : std::unique_ptr<FakeSystemd>(new FakeSystemd(*library));
}

FakeSystemd::FakeSystemd(const SdBusServer& library)
    : library_(library),
      dir_(*TempDir::Create()),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const std::string path = dir_.path() + "/bus";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener_.get(), 16), 0);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody asks yet
  setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + path).c_str(), 1);
  accepts_ = std::thread([this] { Accept(); });
}

FakeSystemd::~FakeSystemd() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    for (const UniqueFd& connection : connections_) {
      shutdown(connection.get(), SHUT_RDWR);
    }
  }
  shutdown(listener_.get(), SHUT_RDWR);
  accepts_.join();
  for (std::thread& server : servers_) {
    server.join();
  }
}

void FakeSystemd::Accept() {
  while (true) {
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::lock_guard lock(mutex_);
    if (ends_ || !connection) {
      return;
    }
    servers_.emplace_back([this, number = connection.get()] { Serve(number); });
    connections_.push_back(std::move(connection));
  }
}

void FakeSystemd::Serve(int connection) {
  bool hello = true;
  {
    const std::lock_guard lock(mutex_);
    hello = !std::ranges::contains(silent_, "");
  }
  if (!hello) {
    std::array<char, 4096> heard{};
    while (read(connection, heard.data(), heard.size()) > 0) {
    }
    return;
  }
  sd_bus* bus = nullptr;
  library_.sd_bus_new(&bus);
  // Its own: closing it is the library's.
  const int fd = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  library_.sd_bus_set_fd(bus, fd, fd);
  library_.sd_bus_set_server(bus, 1, Id128{.words = {1, 1}});
  library_.sd_bus_set_anonymous(bus, 1);
  library_.sd_bus_set_sender(bus, "org.freedesktop.systemd1");
  int status = library_.sd_bus_start(bus);
  while (status >= 0) {
    sd_bus_message* message = nullptr;
    status = library_.sd_bus_process(bus, &message);
    if (message != nullptr) {
      Answer(bus, message);
      library_.sd_bus_message_unref(message);
    } else if (status == 0) {
      status = library_.sd_bus_wait(bus, kNoLimit);
    }
  }
  library_.sd_bus_close(bus);
  library_.sd_bus_unref(bus);
}

void FakeSystemd::Answer(sd_bus* bus, sd_bus_message* message) {
  if (library_.sd_bus_message_is_method_call(message, nullptr, nullptr) <= 0) {
    return;
  }
  const std::string method = library_.sd_bus_message_get_member(message);
  if (method == "Hello") {
    library_.sd_bus_reply_method_return(message, "s", ":1.7");
    return;
  }
  if (method == "AddMatch") {
    library_.sd_bus_reply_method_return(message, "");
    return;
  }
  std::string refusal;
  std::function<void()> starting;
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::contains(silent_, method)) {
      return;
    }
    if (const auto found = refused_.find(method); found != refused_.end()) {
      refusal = found->second;
    }
    starting = method == "StartTransientUnit" ? starting_ : nullptr;
  }
  if (starting) {
    starting();
  }
  if (!refusal.empty()) {
    ReplyError(bus, message, refusal);
    return;
  }
  const std::lock_guard lock(mutex_);
  AnswerManager(bus, message, method);
}

void FakeSystemd::AnswerManager(sd_bus* bus, sd_bus_message* message, const std::string& method) {
  if (method == "StartTransientUnit") {
    Start(bus, message);
    return;
  }
  if (method == "Get") {
    const auto unit = units_.find(UnitOf(library_.sd_bus_message_get_path(message)));
    if (unit == units_.end()) {
      ReplyError(bus, message, "org.freedesktop.DBus.Error.UnknownObject");
    } else {
      library_.sd_bus_reply_method_return(message, "v", "s", unit->second.control_group.c_str());
    }
    return;
  }
  const std::string unit = library_.ReadText(message);
  if (!units_.contains(unit)) {
    ReplyError(bus, message, kNoSuchUnit);
  } else if (method == "GetUnit") {
    library_.sd_bus_reply_method_return(message, "o", ObjectOf(unit).c_str());
  } else if (method == "StopUnit") {
    Stop(bus, message, unit);
  } else if (method == "ResetFailedUnit") {
    calls_.push_back("forget " + unit);
    units_.erase(unit);
    library_.sd_bus_reply_method_return(message, "");
  } else if (method == "SetUnitProperties") {
    int runtime = 0;
    library_.sd_bus_message_read(message, "b", &runtime);
    calls_.push_back("set " + unit);
    library_.ReadProperties(message, units_[unit].properties);
    library_.sd_bus_reply_method_return(message, "");
  }
}

void FakeSystemd::Start(sd_bus* bus, sd_bus_message* message) {
  const std::string unit = library_.ReadText(message);
  library_.ReadText(message);
  if (units_.contains(unit)) {
    ReplyError(bus, message, "org.freedesktop.systemd1.UnitExists");
    return;
  }
  calls_.push_back("start " + unit);
  Unit made;
  library_.ReadProperties(message, made.properties);
  made.control_group = Format("/{}/{}", made.properties["Slice"], unit);
  units_.emplace(unit, std::move(made));
  EndJob(bus, message, unit);
}

/// What has ended well is forgotten; else it stays until it is to be forgotten.
void FakeSystemd::Stop(sd_bus* bus, sd_bus_message* message, const std::string& unit) {
  calls_.push_back("stop " + unit);
  if (result_ == "done" && !units_[unit].control_group.empty()) {
    units_.erase(unit);
  }
  EndJob(bus, message, unit);
}

/// The end of another unit's job, and of this one's, may be told before the job is named.
void FakeSystemd::EndJob(sd_bus* bus, sd_bus_message* message, const std::string& unit) {
  const auto tell = [&](const std::string& job, const std::string& of, const std::string& result) {
    if (result.empty()) {
      return;
    }
    library_.sd_bus_emit_signal(bus, kManagerPath, kManager, "JobRemoved", "uoss", jobs_,
                                job.c_str(), of.c_str(), result.c_str());
  };
  const std::string job = Format("/org/freedesktop/systemd1/job/{}", ++jobs_);
  tell(job, "another.service", "failed");
  const bool early = jobs_ % 2 == 0;
  if (early) {
    tell(job, unit, result_);
  }
  library_.sd_bus_reply_method_return(message, "o", job.c_str());
  if (!early) {
    tell(job, unit, result_);
  }
}

void FakeSystemd::ReplyError(sd_bus*, sd_bus_message* message, const std::string& name) {
  library_.sd_bus_reply_method_errorf(message, name.c_str(), "said by the fake");
}

void FakeSystemd::Put(const std::string& unit, const std::string& control_group) {
  const std::lock_guard lock(mutex_);
  units_[unit] = {.control_group = control_group};
}

bool FakeSystemd::Has(const std::string& unit) const {
  const std::lock_guard lock(mutex_);
  return units_.contains(unit);
}

std::vector<std::string> FakeSystemd::PropertiesOf(const std::string& unit) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  if (const auto found = units_.find(unit); found != units_.end()) {
    for (const auto& [name, value] : found->second.properties) {
      out.push_back(Format("{}={}", name, value));
    }
  }
  return out;
}

std::vector<std::string> FakeSystemd::Calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FakeSystemd::Refuse(const std::string& method, const std::string& error) {
  const std::lock_guard lock(mutex_);
  refused_[method] = error;
}

void FakeSystemd::BeSilentAt(const std::string& method) {
  const std::lock_guard lock(mutex_);
  silent_.push_back(method);
}

void FakeSystemd::EndJobsWith(const std::string& result) {
  const std::lock_guard lock(mutex_);
  result_ = result;
}

void FakeSystemd::WhenStarting(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  starting_ = std::move(call);
}

}  // namespace gantry::os
