// SPDX-License-Identifier: Apache-2.0
//
// Source: random(4); adjtime(3); clock_settime(2).
#include "plugins/vmm/guest/set_up.h"

#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <ranges>
#include <string_view>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/modules.h"
#include "plugins/vmm/guest/mounts.h"
#include "plugins/vmm/guest/network.h"

namespace gantry::vmm::guest {
namespace {

constexpr int64_t kNsInSecond = 1'000'000'000;
/// What is made up for slowly: half a millisecond a second, so four minutes for this.
constexpr int64_t kMostSlewNs = 128'000'000;
/// Not worth a change: the message has taken longer.
constexpr int64_t kLeastNs = 1'000'000;
constexpr size_t kMaxEntropy = 4096;

Status SetClock(const protocol::Clock& clock) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t difference = clock.realtime_ns - (now.tv_sec * kNsInSecond + now.tv_nsec);
  switch (ChangeFor(difference, clock.step)) {
    case ClockChange::kNone:
      return {};
    case ClockChange::kSlew: {
      const timeval delta{.tv_sec = 0, .tv_usec = difference / 1000};
      return ::adjtime(&delta, nullptr) == 0 ? Status() : FailErrno(errno, "slew the clock");
    }
    default: {
      const timespec then{.tv_sec = clock.realtime_ns / kNsInSecond,
                          .tv_nsec = clock.realtime_ns % kNsInSecond};
      return ::clock_settime(CLOCK_REALTIME, &then) == 0 ? Status()
                                                         : FailErrno(errno, "set the clock");
    }
  }
}

Status AddEntropy(const std::string& bytes) {
  if (bytes.size() > kMaxEntropy) {
    return Fail(Code::kInvalidArgument, "add entropy: {} bytes, at most {}", bytes.size(),
                kMaxEntropy);
  }
  const UniqueFd random(::open("/dev/urandom", O_WRONLY | O_CLOEXEC));
  if (!random) {
    return FailErrno(errno, "add entropy: open '/dev/urandom'");
  }
  std::vector<uint32_t> room(sizeof(rand_pool_info) / sizeof(uint32_t) + bytes.size() / 4 + 2);
  auto* const pool = reinterpret_cast<rand_pool_info*>(room.data());
  pool->entropy_count = static_cast<int>(bytes.size() * 8);
  pool->buf_size = static_cast<int>(bytes.size());
  std::ranges::copy(bytes, reinterpret_cast<char*>(pool->buf));
  if (::ioctl(random.get(), RNDADDENTROPY, pool) != 0) {
    return FailErrno(errno, "add entropy");
  }
  // Else what comes out is as it was before for up to a minute, in a guest that is restored too.
  if (::ioctl(random.get(), RNDRESEEDCRNG) != 0) {
    return FailErrno(errno, "seed the random source anew");
  }
  return {};
}

Status WriteFiles(const std::vector<protocol::File>& files) {
  for (const protocol::File& file : files) {
    GANTRY_CHECK_OK(CheckFilePath(file.path));
    GANTRY_CHECK_OK(MakeDirectories(file.path.substr(0, file.path.rfind('/'))));
    const mode_t mode = file.mode == 0 ? 0644 : static_cast<mode_t>(file.mode & 07777);
    GANTRY_CHECK_OK(ReplaceFile(file.path, file.content, mode));
  }
  return {};
}

bool HasOddPart(std::string_view path) {
  return path.empty() || std::ranges::any_of(std::views::split(path, '/'), [](auto part) {
           const std::string_view word(part);
           return word.empty() || word == "." || word == ".." || word.contains('\0');
         });
}

}  // namespace

ClockChange ChangeFor(int64_t difference_ns, bool step) {
  const bool near = difference_ns > -kMostSlewNs && difference_ns < kMostSlewNs;
  if (step || !near) {
    return ClockChange::kStep;
  }
  return difference_ns > -kLeastNs && difference_ns < kLeastNs ? ClockChange::kNone
                                                               : ClockChange::kSlew;
}

Result<std::string> SettingPath(const std::string& name) {
  std::string path = name;
  const size_t first = path.find_first_of("./");
  if (first != path.npos && path[first] == '.') {
    for (char& c : path) {
      c = c == '.' ? '/' : (c == '/' ? '.' : c);
    }
  }
  if (HasOddPart(path)) {
    return Fail(Code::kInvalidArgument, "set '{}': it is no setting of the kernel's",
                name.substr(0, 128));
  }
  return "/proc/sys/" + path;
}

Status CheckFilePath(const std::string& path) {
  if (!path.starts_with("/run/") || HasOddPart(std::string_view(path).substr(1))) {
    return Fail(Code::kInvalidArgument, "write '{}': files are below /run alone",
                path.substr(0, 128));
  }
  return {};
}

Status SetUpMachine(const protocol::SetUp& request) {
  if (request.clock) {
    GANTRY_CHECK_OK(SetClock(*request.clock));
  }
  if (!request.entropy.empty()) {
    GANTRY_CHECK_OK(AddEntropy(request.entropy));
  }
  if (!request.hostname.empty() &&
      ::sethostname(request.hostname.c_str(), request.hostname.size()) != 0) {
    return FailErrno(errno, "set the host name '{}'", request.hostname.substr(0, 64));
  }
  for (const protocol::Sysctl& setting : request.sysctls) {
    GANTRY_TRY(const std::string path, SettingPath(setting.name));
    GANTRY_CHECK_OK(WriteExisting(path, setting.value));
  }
  if (!request.interfaces.empty()) {
    AwaitModules();  // One of them drives the interfaces.
  }
  GANTRY_CHECK_OK(SetUpNetwork(request));
  return WriteFiles(request.files);
}

}  // namespace gantry::vmm::guest
