// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/maker/guest_run.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <sstream>

#include <gantry/format.h>

#include "core/os/fs.h"
#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/socket_io.h"

namespace gantry::vmm {
namespace {

constexpr uint32_t kPort = 1030;
constexpr uint64_t kMemory = 512 * kMiB;

Status MakeDisk(const std::string& disk, const std::vector<std::string>& files) {
  std::vector<std::string> words{GANTRY_MAKE_DISK, disk};
  words.insert(words.end(), files.begin(), files.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    return Fail(Code::kInternal, "make the guest's disk '{}': status {}", disk, status);
  }
  return {};
}

/// Each test is done long before the deadline for the next words. Ends with the guest, too.
Result<std::string> ReadAll(int socket) {
  std::string all;
  std::array<char, 65536> bytes{};
  while (IsReadable(socket, Soon())) {
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
      return all;
    }
    all.append(bytes.data(), count < 0 ? 0 : static_cast<size_t>(count));
  }
  return Fail(Code::kDeadlineExceeded, "the program says nothing any more: {}",
              all.substr(all.size() - std::min<size_t>(all.size(), 2000)));
}

/// The word behind one of GoogleTest's marks, without the time.
std::string NameIn(const std::string& line, const std::string& mark) {
  const size_t at = line.find(mark);
  if (at == line.npos) {
    return "";
  }
  const std::string name = line.substr(at + mark.size());
  return name.substr(0, name.find_first_of(" ,"));
}

bool IsResult(const std::string& line) { return line.ends_with(" ms)"); }

class Reader {
 public:
  explicit Reader(std::string output) { run_.output = std::move(output); }

  GuestRun Read() {
    std::istringstream lines(run_.output);
    for (std::string line, before; std::getline(lines, line); before = line) {
      Take(line, before);
      run_.end = line;
    }
    run_.unended = open_;
    return std::move(run_);
  }

 private:
  void Take(const std::string& line, const std::string& before) {
    if (const std::string name = NameIn(line, "[ RUN      ] "); !name.empty()) {
      open_ = name;
    } else if (line.starts_with("[==========] ") && line.contains(" ran.")) {
      run_.tests = std::strtoul(line.c_str() + sizeof("[==========]"), nullptr, 10);
    } else if (!open_.empty() && IsResult(line)) {
      TakeResult(line, before);
    }
  }

  void TakeResult(const std::string& line, const std::string& before) {
    if (NameIn(line, "[       OK ] ") == open_) {
      ++run_.passed;
    } else if (NameIn(line, "[  SKIPPED ] ") == open_) {
      run_.skipped.push_back(open_ + ": " + before);
    } else if (NameIn(line, "[  FAILED  ] ") == open_) {
      run_.failed.push_back(open_);
    } else {
      return;
    }
    open_.clear();
  }

  GuestRun run_;
  std::string open_;
};

}  // namespace

GuestRun ReadRun(std::string output) { return Reader(std::move(output)).Read(); }

Result<GuestRun> RunInGuest(const std::string& program, const std::vector<std::string>& files,
                            const std::string& filter) {
  const os::TempDir folder = os::TempDir::Create("/tmp/gvm-").value();
  const std::string disk = folder.path() + "/programs.img";
  std::vector<std::string> all{program};
  all.insert(all.end(), files.begin(), files.end());
  GANTRY_CHECK_OK(MakeDisk(disk, all));
  const auto change = [&](VmConfig& config, QemuOptions&) {
    config.disks.push_back({.serial = "programs", .path = disk, .read_only = false});
    config.memory.bytes = kMemory;
    config.cmdline = Format("+gantry.run={} gantry.arguments=--gtest_color=no{}", program,
                            filter.empty() ? "" : ",--gtest_filter=" + filter);
  };
  GuestVm guest(GuestSettings{
      .first = FirstProcess::kPrograms, .vsock = VsockProgram::kOurs, .change = change});
  GANTRY_TRY(const UniqueFd listener, guest.vsock().Listen(kPort));
  GANTRY_CHECK_OK(guest.Launch());
  auto output = AwaitConnection(listener, Soon());
  Result<std::string> text = output ? ReadAll(output->get()) : std::unexpected(output.error());
  if (!text) {
    Error error = std::move(text).error();
    error.message += guest.Words();
    return std::unexpected(std::move(error));
  }
  GuestRun run = ReadRun(std::move(*text));
  if (!run.end.starts_with("exit ")) {
    run.end += guest.Words();
  }
  return run;
}

std::string OutputOf(const GuestRun& run, const std::string& test) {
  const size_t from = run.output.find("[ RUN      ] " + test + "\n");
  if (from == run.output.npos) {
    return "";
  }
  return run.output.substr(from, run.output.find("[ RUN      ] ", from + 1) - from);
}

}  // namespace gantry::vmm
