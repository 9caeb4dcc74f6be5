// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/engine/guest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"

namespace gantry::wasm {
namespace {

struct Report {
  int prepared = -1;
  int end = -1;
  uint32_t code = 0;
  char why[16384] = "";
};

struct Compiled {
  int artifact = -1;
  uint32_t kind = 0;
};

Compiled Compile(const std::string& name) {
  char path[] = "/tmp/gantry-artifact-XXXXXX";
  const int made = mkstemp(path);
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string module = std::string(GANTRY_TEST_GUESTS) + "/" + name + ".wasm";
    execl(GANTRY_GUEST_COMPILER, GANTRY_GUEST_COMPILER, module.c_str(), path, nullptr);
    _exit(103);
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  close(made);
  Compiled compiled;
  if (!WIFEXITED(status) || WEXITSTATUS(status) >= 100) {
    ADD_FAILURE() << name << " was not compiled: status " << status;
  } else {
    compiled = {open(path, O_RDONLY | O_CLOEXEC), static_cast<uint32_t>(WEXITSTATUS(status))};
  }
  unlink(path);
  return compiled;
}

const Compiled& CompiledOf(const std::string& name) {
  static std::map<std::string, Compiled> all;
  const auto known = all.find(name);
  return known != all.end() ? known->second : all.emplace(name, Compile(name)).first->second;
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& each : texts) {
    pointers.push_back(each.c_str());
  }
  return pointers;
}

void Be(const Guest& guest, Report& report) {
  const std::vector<const char*> args = Pointers(guest.args);
  const std::vector<const char*> env = Pointers(guest.env);
  std::vector<std::string> names;
  std::vector<gantry_wasm_preopen> preopens;
  names.reserve(guest.directories.size());
  for (const auto& [here, there] : guest.directories) {
    const bool read_only = there.ends_with(":ro");
    names.push_back(read_only ? there.substr(0, there.size() - 3) : there);
    preopens.push_back({here.c_str(), names.back().c_str(), static_cast<uint8_t>(!read_only)});
  }
  gantry_wasm_request request = {};
  // Not needed any more once it is prepared.
  request.artifact = fcntl(ArtifactOf(guest.name), F_DUPFD_CLOEXEC, 0);
  request.kind = KindOf(guest.name);
  request.entry = guest.entry.empty() ? nullptr : guest.entry.c_str();
  request.args = args.data();
  request.arg_count = args.size();
  request.env = env.data();
  request.env_count = env.size();
  request.preopens = preopens.data();
  request.preopen_count = preopens.size();
  request.memory_bytes = guest.memory;
  request.network = guest.network ? 1 : 0;
  request.listener = guest.listener;
  struct gantry_wasm_run* run = nullptr;
  report.prepared = gantry_wasm_prepare(&request, &run, report.why, sizeof report.why);
  close(request.artifact);
  if (report.prepared == GANTRY_WASM_OK && !guest.only_prepare) {
    report.end = gantry_wasm_run(run, &report.code, report.why, sizeof report.why);
  }
}

std::string Contents(int file) {
  std::string contents;
  char bytes[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(file, bytes, sizeof bytes)) > 0;) {
    contents.append(bytes, static_cast<size_t>(got));
  }
  return contents;
}

}  // namespace

int ArtifactOf(const std::string& name) { return CompiledOf(name).artifact; }

uint32_t KindOf(const std::string& name) { return CompiledOf(name).kind; }

RunningGuest::RunningGuest(const Guest& guest)
    : report_(memfd_create("report", MFD_CLOEXEC)),
      out_(memfd_create("out", MFD_CLOEXEC)),
      err_(memfd_create("err", MFD_CLOEXEC)) {
  ArtifactOf(guest.name);
  pid_ = fork();
  if (pid_ != 0) {
    return;
  }
  signal(SIGPIPE, SIG_IGN);
  if (guest.stack != 0) {
    const rlimit limit = {guest.stack, guest.stack};
    setrlimit(RLIMIT_STACK, &limit);
  }
  dup2(guest.in >= 0 ? guest.in : open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  dup2(guest.out >= 0 ? guest.out : out_, 1);
  dup2(guest.err >= 0 ? guest.err : err_, 2);
  if (!guest.root.empty() && (chroot(guest.root.c_str()) != 0 || chdir("/") != 0)) {
    _exit(1);
  }
  // Of pipes the other ends are the test's alone.
  for (int each = 3; each < 1024; ++each) {
    if (each != report_ && each != ArtifactOf(guest.name) && each != guest.listener) {
      close(each);
    }
  }
  static Report report;
  Be(guest, report);
  const ssize_t put = write(report_, &report, sizeof report);
  _exit(put == static_cast<ssize_t>(sizeof report) ? 0 : 1);
}

RunningGuest::~RunningGuest() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int each : {report_, out_, err_}) {
    close(each);
  }
}

int RunningGuest::Threads() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) {
      return std::atoi(line.c_str() + 8);
    }
  }
  return -1;
}

GuestEnd RunningGuest::End() {
  GuestEnd end;
  waitpid(pid_, &end.status, 0);
  pid_ = -1;
  const std::string bytes = Contents(report_);
  static Report report;
  report = Report();
  bytes.copy(reinterpret_cast<char*>(&report), sizeof report);
  end.prepared = report.prepared;
  end.end = report.end;
  end.code = report.code;
  end.why = report.why;
  end.out = Contents(out_);
  end.err = Contents(err_);
  return end;
}

GuestEnd RunGuest(const Guest& guest) { return RunningGuest(guest).End(); }

}  // namespace gantry::wasm
