// SPDX-License-Identifier: Apache-2.0
//
// In place of the engine: its artifact is a text, whose lines are done one after the other.
//
//   refuse N TEXT       of prepare: error N, and why
//   exit N | trap TEXT | fail TEXT    the ends
//   say TEXT            to standard output
//   request             what prepare was given
//   read PATH           a file, to standard output
//   write PATH          makes a file
//   descriptors         which are open
//   call N A B C D E F       a system call: its result, or its errno
//   wait | spin         in the kernel, or in a loop, until a signal comes
#include <fcntl.h>
#include <gantry_wasm_engine.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

struct gantry_wasm_run {
  std::string script;
  std::string request;
};

namespace {

std::string ReadAll(int fd) {
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = read(fd, part, sizeof(part))) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

void Say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) {
    _exit(99);
  }
}

void SetWhy(const std::string& text, char* why, size_t size) {
  snprintf(why, size, "%s", text.c_str());
}

std::string TextOf(const gantry_wasm_request& request) {
  std::ostringstream out;
  out << "kind " << request.kind << " entry " << (request.entry ? request.entry : "none")
      << " memory " << request.memory_bytes << " network " << int{request.network} << " listener "
      << (request.listener >= 0 ? "yes" : "no") << "\n";
  for (size_t i = 0; i < request.arg_count; ++i) {
    out << "arg " << request.args[i] << "\n";
  }
  for (size_t i = 0; i < request.env_count; ++i) {
    out << "env " << request.env[i] << "\n";
  }
  for (size_t i = 0; i < request.preopen_count; ++i) {
    const gantry_wasm_preopen& one = request.preopens[i];
    out << "directory " << one.guest << " at " << one.path << (one.writable ? " rw\n" : " ro\n");
  }
  return out.str();
}

std::string Descriptors() {
  std::string out;
  for (int fd = 0; fd < 100; ++fd) {
    out += fcntl(fd, F_GETFD) >= 0 ? " " + std::to_string(fd) : "";
  }
  return out + "\n";
}

std::string Call(std::istringstream& words) {
  long number = 0;
  long values[6] = {};
  words >> number;
  for (long& value : values) {
    words >> value;
  }
  const long answer =
      syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
  return (answer < 0 ? "errno " + std::to_string(errno) : "success") + "\n";
}

std::string FileAt(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text = fd < 0 ? "errno " + std::to_string(errno) + "\n" : ReadAll(fd);
  close(fd);
  return text;
}

std::string MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::string text = fd < 0 ? "errno " + std::to_string(errno) + "\n" : "success\n";
  close(fd);
  return text;
}

// A loop without a system call, which the compiler has to leave as it is.
[[noreturn]] void Spin() {
  for (;;) {
    asm volatile("");
  }
}

// The type has the name of a function.
struct gantry_wasm_run* MakeRun(std::string script, std::string request) {
  using Run = struct gantry_wasm_run;
  return new Run{std::move(script), std::move(request)};
}

}  // namespace

extern "C" {

int gantry_wasm_prepare(const gantry_wasm_request* request, struct gantry_wasm_run** run, char* why,
                        size_t why_size) {
  std::string script = ReadAll(request->artifact);
  std::istringstream words(script);
  std::string word;
  int error = 0;
  if (words >> word && word == "refuse") {
    words >> error;
    std::getline(words >> std::ws, word);
    SetWhy(word, why, why_size);
    return error;
  }

  *run = MakeRun(std::move(script), TextOf(*request));
  return GANTRY_WASM_OK;
}

int gantry_wasm_run(struct gantry_wasm_run* run, uint32_t* code, char* why, size_t why_size) {
  std::istringstream lines(run->script);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string rest;
    words >> word;
    if (word == "call") {
      Say(Call(words));
      continue;
    }
    if (word == "spin") {
      Spin();
    }
    if (word == "wait") {
      syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
    }
    std::getline(words >> std::ws, rest);
    if (word == "exit") {
      *code = static_cast<uint32_t>(std::stoul(rest));
      return GANTRY_WASM_EXITED;
    }
    if (word == "trap" || word == "fail") {
      SetWhy(rest, why, why_size);
      return word == "trap" ? GANTRY_WASM_TRAPPED : GANTRY_WASM_FAILED;
    }
    if (word == "say") {
      Say(rest + "\n");
    } else if (word == "request") {
      Say(run->request);
    } else if (word == "read") {
      Say(FileAt(rest));
    } else if (word == "write") {
      Say(MakeFile(rest));
    } else if (word == "descriptors") {
      Say(Descriptors());
    }
  }
  *code = 0;
  return GANTRY_WASM_EXITED;
}

const char* gantry_wasm_engine(void) { return "scripted 1.0"; }
}
