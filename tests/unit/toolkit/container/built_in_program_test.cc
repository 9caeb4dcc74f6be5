// SPDX-License-Identifier: Apache-2.0
//
// A program that the maker has in itself, called in place of an execution: when, what it finds, and
// that what an execution takes from a process is gone.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/toolkit/container/bundle.h"
#include "tests/unit/toolkit/container/running.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void Say(const std::string& text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) {
    ::_exit(99);
  }
}

std::string OwnFile(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  return fd ? Drain(fd.get()) : ErrnoName(errno);
}

// Of /proc/self/status, the lines that begin with one of `names`.
std::string StatusLines(const std::vector<std::string>& names) {
  std::istringstream lines(OwnFile("/proc/self/status"));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& name : names) {
      out += line.starts_with(name + ":") ? line + "\n" : "";
    }
  }
  return out;
}

// In KiB, of what it says of itself; else 0.
long AnonymousMemory(const std::string& text) {
  const size_t line = text.find("RssAnon:");
  return line == std::string::npos ? 0 : std::atol(text.c_str() + line + 8);
}

// Open descriptors below 100.
std::string OpenDescriptors() {
  std::string out;
  for (int fd = 0; fd < 100; ++fd) {
    out += ::fcntl(fd, F_GETFD) >= 0 ? " " + std::to_string(fd) : "";
  }
  return out;
}

class Program : public BuiltInProgram {
 public:
  std::function<Status(const ProgramStart&)> prepare = [](const ProgramStart&) { return Status(); };
  std::function<std::vector<sock_filter>(const AfterFilter&)> filter = [](const AfterFilter&) {
    return std::vector<sock_filter>();
  };
  std::function<int()> run = [] { return 0; };
  std::vector<int> fds;

  std::vector<int> Descriptors() const override { return fds; }

  Status Prepare(const ProgramStart& start) override { return prepare(start); }

  Result<std::vector<sock_filter>> Filter(const AfterFilter& after) override {
    return filter(after);
  }

  int Run() override { return run(); }
};

// Of each of these system calls: this errno. All others are let through.
std::vector<sock_filter> Refusing(const std::vector<uint32_t>& numbers, uint32_t error) {
  std::vector<sock_filter> out = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const uint32_t number : numbers) {
    out.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    out.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  out.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return out;
}

// What it writes, and how it ends; or `CODE: message`.
template <class Make>
std::string RunWith(const Make& make) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  Result<MadeProcess> made = make(out.get());
  out.reset();
  const Status started = made ? made->Start() : Status(std::unexpected(made.error()));
  if (!started) {
    return Format("{}: {}", CodeName(started.error().code), started.error().message);
  }
  const std::string text = Drain(in.get());
  return text + EndOf(made->pid());
}

// What `call` gives, called on a thread that has this stack.
std::string OnStack(std::span<char> stack, std::function<std::string()> call) {
  struct Call {
    std::function<std::string()> what;
    std::string said;
  } all{std::move(call), {}};

  pthread_attr_t attributes{};
  EXPECT_EQ(::pthread_attr_init(&attributes), 0);
  EXPECT_EQ(::pthread_attr_setstack(&attributes, stack.data(), stack.size()), 0);
  const auto run = [](void* argument) -> void* {
    auto* const one = static_cast<Call*>(argument);
    one->said = one->what();
    return nullptr;
  };
  pthread_t thread{};
  EXPECT_EQ(::pthread_create(&thread, &attributes, run, &all), 0);
  EXPECT_EQ(::pthread_join(thread, nullptr), 0);
  ::pthread_attr_destroy(&attributes);
  return all.said;
}

// On that stack, and on the thread that calls this.
void OnCoroutine(std::span<char> stack, std::function<void()> call) {
  static std::function<void()> what;
  what = std::move(call);
  ucontext_t caller{};
  ucontext_t own{};
  ASSERT_EQ(::getcontext(&own), 0);
  own.uc_stack.ss_sp = stack.data();
  own.uc_stack.ss_size = stack.size();
  own.uc_link = &caller;
  ::makecontext(&own, [] { what(); }, 0);
  ASSERT_EQ(::swapcontext(&caller, &own), 0);
}

class BuiltInProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  std::string Run(const Config& config, std::vector<int> passed_on = {}) {
    return RunWith([&](int out) -> Result<MadeProcess> {
      GANTRY_TRY(MakeRequest request, bundle_.RequestOf(config));
      request.streams = {-1, out, out};
      request.passed_on = std::move(passed_on);
      request.program = &program_;
      return Make(std::move(request));
    });
  }

  Bundle bundle_;
  Program program_;
};

const char* const kOfUserNamespace =
    R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "user"}])";
const char* const kMappings =
    R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}],
       "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}])";
const char* const kAllOfTwo =
    R"("capabilities": {"bounding": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_KILL", "CAP_CHOWN"],
       "effective": ["CAP_KILL"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]})";

TEST_F(BuiltInProgramTest, IsCalledWhereItsProcessIsTheContainers) {
  program_.prepare = [](const ProgramStart& start) {
    Say("prepared as " + std::to_string(::getpid()) + " with");
    for (const std::string& one : start.spec.process.env) {
      Say(" " + one);
    }
    Say(" and " + start.spec.process.args.front() + "\n");
    return Status();
  };
  program_.run = [] {
    Say("run\n" + OwnFile("/etc/passwd"));
    return 7;
  };
  EXPECT_EQ(Run({.user = R"({"uid": 77, "gid": 0})"}),
            "prepared as 1 with PATH=/bin A=b and sh\nrun\n"
            "other:x:7:7::/other:/bin/sh\nu:x:77:7::/home/of77:/bin/sh\nexit 7");
}

TEST_F(BuiltInProgramTest, DoesNotRunBeforeTheGateOpens) {
  program_.run = [this] {
    Say(Exists("/opened") ? "opened" : "too early");
    return 0;
  };
  EXPECT_EQ(RunWith([&](int out) -> Result<MadeProcess> {
              GANTRY_TRY(MakeRequest request, bundle_.RequestOf({}));
              request.streams = {-1, out, out};
              request.program = &program_;
              auto made = Make(request);
              std::ofstream(bundle_.InRoot("/opened")) << "x";
              return made;
            }),
            "openedexit 0");
}

TEST_F(BuiltInProgramTest, HasNoCapabilitiesWhateverTheSpecSays) {
  program_.run = [] {
    Say(StatusLines({"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"}));
    return 0;
  };
  const char* const none =
      "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
      "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nexit 0";
  EXPECT_EQ(Run({.process = kAllOfTwo}), none);
  EXPECT_EQ(Run({.process = kAllOfTwo, .user = R"({"uid": 1000, "gid": 1000})"}), none);
  EXPECT_EQ(Run({.process = kAllOfTwo, .linux_part = kMappings, .namespaces = kOfUserNamespace}),
            none);
}

TEST_F(BuiltInProgramTest, IsNobodysToLookInto) {
  program_.run = [] {
    struct stat about{};
    ::stat("/proc/self/environ", &about);
    Say(std::to_string(about.st_uid));
    return 0;
  };
  // Files of a process that nobody may look into belong to root, whoever it is.
  EXPECT_EQ(Run({.user = R"({"uid": 1000, "gid": 1000})"}), "0exit 0");
}

TEST_F(BuiltInProgramTest, HasNoDescriptorOfTheMaker) {
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY));  // Without CLOEXEC.
  ASSERT_TRUE(static_cast<bool>(secret));
  program_.run = [] {
    Say(OpenDescriptors());
    return 0;
  };
  EXPECT_EQ(Run({}), " 0 1 2exit 0");
}

TEST_F(BuiltInProgramTest, KeepsItsOwnDescriptorsAboveThosePassedOn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  const UniqueFd passed(::open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  program_.fds = {in.get(), out.get()};
  std::vector<int> its;
  program_.prepare = [&](const ProgramStart& start) {
    its = start.descriptors;
    return ::write(its[1], "through", 7) == 7 ? Status() : FailErrno(errno, "write");
  };
  program_.run = [&] {
    char text[8] = {};
    Say(::read(its[0], text, 7) == 7 && its[0] > 4 && its[1] > 4 ? text : "lost");
    struct stat third{};
    struct stat fourth{};
    Say(::fstat(3, &third) == 0 && ::fstat(4, &fourth) == 0 && S_ISREG(third.st_mode) &&
                third.st_ino == fourth.st_ino
            ? " passed"
            : " none");
    return 0;
  };
  EXPECT_EQ(Run({}, {passed.get(), passed.get()}), "through passedexit 0");
}

TEST_F(BuiltInProgramTest, HasTheDispositionsOfAnExecution) {
  struct sigaction old{};
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGUSR2, &ignored, &old), 0);
  program_.run = [] {
    Say(StatusLines({"SigBlk", "SigIgn", "SigCgt"}));
    return 0;
  };
  EXPECT_EQ(Run({}),
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
            "SigCgt:\t0000000000000000\nexit 0");
  ASSERT_EQ(::sigaction(SIGUSR2, &old, nullptr), 0);
}

TEST_F(BuiltInProgramTest, HasTheLimitsOfTheSpec) {
  program_.run = [] {
    Say(OwnFile("/proc/self/limits"));
    return 0;
  };
  EXPECT_THAT(
      Run({.process = R"("rlimits": [{"type": "RLIMIT_NOFILE", "soft": 99, "hard": 199}])"}),
      HasSubstr("Max open files            99                   199                  files"));
}

TEST_F(BuiltInProgramTest, HasNoMemoryOfItsMaking) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr long kKibibytes = 8192;
  program_.run = [] {
    Say(StatusLines({"RssAnon"}));
    return 0;
  };
  long before = 0;
  const std::string said = RunWith([&](int out) -> Result<MadeProcess> {
    const std::string text(size_t{kKibibytes} << 10, 'x');
    GANTRY_TRY(MakeRequest request,
               bundle_.RequestOf({.top = R"("annotations": {"a": ")" + text + "\"}"}));
    request.streams = {-1, out, out};
    request.program = &program_;
    // With the text twice: of the document, and of the annotation.
    before = AnonymousMemory(StatusLines({"RssAnon"}));
    return Make(std::move(request));
  });
  EXPECT_THAT(said, EndsWith("exit 0"));
  EXPECT_GT(AnonymousMemory(said), 0);
  EXPECT_LT(AnonymousMemory(said), before - kKibibytes);
}

// As a library may call the maker: on a thread whose stack is no larger than what is given back of
// it, and with somebody's memory right below.
TEST_F(BuiltInProgramTest, LosesNothingBelowTheStackThatItIsMadeOn) {
  constexpr size_t kStack = size_t{128} << 10;
  constexpr size_t kBelow = size_t{256} << 10;
  void* const mapped =
      ::mmap(nullptr, kBelow + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  char* const memory = static_cast<char*>(mapped);
  std::fill_n(memory, kBelow, 'x');
  program_.run = [&] {
    Say(std::to_string(std::count(memory, memory + kBelow, 'x')));
    return 0;
  };
  auto request = bundle_.RequestOf({});
  ASSERT_TRUE(request.has_value());
  request->program = &program_;
  const std::string said = OnStack({memory + kBelow, kStack}, [&] {
    return RunWith([&](int out) -> Result<MadeProcess> {
      request->streams = {-1, out, out};
      return Make(*std::move(request));
    });
  });
  EXPECT_EQ(said, Format("{}exit 0", kBelow));
  ASSERT_EQ(::munmap(mapped, kBelow + kStack), 0);
}

// Nor of a stack that is nobody's thread's, of which no more is known than its place.
TEST_F(BuiltInProgramTest, LosesNothingBelowAStackThatIsNoThreads) {
  constexpr size_t kStack = size_t{128} << 10;
  constexpr size_t kBelow = size_t{256} << 10;
  const std::unique_ptr<char[]> memory(new char[kBelow + kStack]);
  std::fill_n(memory.get(), kBelow, 'x');
  program_.run = [&] {
    Say(std::to_string(std::count(memory.get(), memory.get() + kBelow, 'x')));
    return 0;
  };
  std::string said;
  OnCoroutine({memory.get() + kBelow, kStack}, [&] { said = Run({}); });
  EXPECT_EQ(said, Format("{}exit 0", kBelow));
}

TEST_F(BuiltInProgramTest, FailsTheMakingWithWhatItCannotPrepare) {
  program_.prepare = [](const ProgramStart&) {
    return Status(Fail(Code::kFailedPrecondition, "prepare the guest: no import 'x'"));
  };
  EXPECT_EQ(Run({}), "FAILED_PRECONDITION: prepare the guest: no import 'x'");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

TEST_F(BuiltInProgramTest, IsUnderItsOwnFilterAndThatOfTheSpec) {
  program_.filter = [](const AfterFilter&) { return Refusing({SYS_getuid}, ENOTTY); };
  program_.run = [] {
    Say(::syscall(SYS_getuid) < 0 ? ErrnoName(errno) : "allowed");
    Say(::mkdir("/x", 0755) < 0 ? " " + ErrnoName(errno) : " allowed");
    Say("\n" + StatusLines({"Seccomp"}));
    return 0;
  };
  const Config config = {.linux_part =
                             R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                               {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO",
                                "errnoRet": 38}]})"};
  EXPECT_EQ(Run(config), "ENOTTY ENOSYS\nSeccomp:\t2\nexit 0");
}

TEST_F(BuiltInProgramTest, HasItsOwnFilterAtTheGate) {
  program_.filter = [](const AfterFilter&) { return Refusing({SYS_getuid}, ENOTTY); };
  auto request = bundle_.RequestOf({});
  ASSERT_TRUE(request.has_value());
  request->program = &program_;
  const auto made = Make(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_THAT(OwnFile(("/proc/" + std::to_string(made->pid()) + "/status").c_str()),
              HasSubstr("\nSeccomp:\t2\n"));
}

TEST_F(BuiltInProgramTest, SaysWhichFilterIsNotLoaded) {
  program_.filter = [](const AfterFilter&) {
    return std::vector<sock_filter>{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};  // Without an end.
  };
  EXPECT_EQ(Run({}), "INTERNAL: load the filter of the program: EINVAL");
}

TEST_F(BuiltInProgramTest, IsToldWhatItsFilterHasToLetThrough) {
  program_.filter = [](const AfterFilter& after) {
    Say(after.seccomp_flags ? Format("flags {}\n", *after.seccomp_flags) : "none\n");
    return std::vector<sock_filter>();
  };
  EXPECT_EQ(Run({}), "none\nexit 0");
  const Config config = {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW",
                                          "flags": ["SECCOMP_FILTER_FLAG_LOG"]})"};
  EXPECT_EQ(Run(config), Format("flags {}\nexit 0", SECCOMP_FILTER_FLAG_LOG));
}

TEST_F(BuiltInProgramTest, TellsWhereTheFilterOfTheSpecIsRefusedByItsOwn) {
  program_.filter = [](const AfterFilter&) { return Refusing({SYS_seccomp}, EACCES); };
  const Config config = {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW"})"};
  EXPECT_EQ(Run(config), "PERMISSION_DENIED: load the filter of linux.seccomp: EACCES");
}

TEST_F(BuiltInProgramTest, NeedsALabelThatTheKernelKnows) {
  EXPECT_THAT(Run({.process = R"("apparmorProfile": "no-such-profile-here")"}),
              AllOf(HasSubstr("AppArmor profile 'no-such-profile-here'"), Not(EndsWith("exit 0"))));
}

TEST_F(BuiltInProgramTest, JoinsAContainer) {
  const Running running(bundle_,
                        {.linux_part = R"("maskedPaths": [])", .top = R"("hostname": "within",
      "annotations": {"a": "b"})"});
  program_.prepare = [](const ProgramStart& start) {
    Say(start.spec.root.path + " " + start.spec.mounts.front().destination + " " +
        start.spec.annotations.at("a") + " " + start.spec.process.cwd + "\n");
    return Status();
  };
  program_.run = [] {
    Say(OwnFile("/proc/sys/kernel/hostname") + StatusLines({"CapEff", "NoNewPrivs"}));
    return 4;
  };
  EXPECT_EQ(RunWith([&](int out) -> Result<MadeProcess> {
              GANTRY_TRY(JoinRequest request,
                         running.RequestOf({.process = kAllOfTwo, .cwd = "/tmp"}));
              request.streams = {-1, out, out};
              request.program = &program_;
              return Join(request);
            }),
            "rootfs /proc b /tmp\nwithin\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nexit 4");
}

}  // namespace
}  // namespace gantry::container
