// SPDX-License-Identifier: Apache-2.0
//
// Holds the namespaces of a pod that has no pause container, and does nothing else: it
// reaps what is left to it and ends on SIGTERM or SIGINT.
//
//     gantry-pause [-i] [-u] [-p] [-h HOSTNAME] [-s PATH=VALUE]...
//
// The keeper starts it, in the pod's user and network namespaces where it has its own. It
// makes the others, -i ipc, -u uts, -p pid; sets the uts namespace's name; writes VALUE
// into PATH below /proc/sys. Then it says on descriptor 3, a socket to the engine, either
// `PID\n`, its own as the host sees it, or `!STEP ERRNO\n`, and waits for a byte: at the
// socket's end instead, which is the engine's, it ends without a trace.
//
// Freestanding: no C library, no stack beyond a page, so that a thousand of them weigh
// as little as they do. Only the system calls of this file.
#include <linux/sched.h>
#include <linux/signal.h>
#include <sys/syscall.h>

namespace {

constexpr int kEngine = 3;
constexpr int kSignalSetSize = 8;
constexpr long kOpenForWriting = 1;  // O_WRONLY
constexpr long kNoWait = 1;          // WNOHANG
constexpr long kAtCwd = -100;        // AT_FDCWD
constexpr long kParentDeathSignal = 1;
constexpr long kErrnoIntr = -4;

#if defined(__x86_64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
#error "which machine is this?"
#endif

long Address(const void* pointer) { return reinterpret_cast<long>(pointer); }

unsigned long LengthOf(const char* text) {
  unsigned long length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}

[[noreturn]] void End(int code) {
  for (;;) {
    Call(SYS_exit_group, code);
  }
}

/// A short line for the engine.
class Line {
 public:
  void Add(const char* text) {
    for (; *text != '\0' && used_ < sizeof(text_); ++text) {
      text_[used_++] = *text;
    }
  }

  void Add(long number) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0 && used_ < sizeof(text_)) {
      text_[used_++] = digits[--count];
    }
  }

  void Send() const { Call(SYS_write, kEngine, Address(text_), static_cast<long>(used_)); }

 private:
  char text_[160] = {};
  unsigned long used_ = 0;
};

[[noreturn]] void Fail(const char* step, long result) {
  Line line;
  line.Add("!");
  line.Add(step);
  line.Add(" ");
  line.Add(-result);
  line.Add("\n");
  line.Send();
  End(1);
}

long Require(const char* step, long result) {
  if (result < 0) {
    Fail(step, result);
  }
  return result;
}

/// `PATH=VALUE`, PATH from /proc/sys on.
void WriteSysctl(char* setting) {
  char* value = setting;
  while (*value != '=' && *value != '\0') {
    ++value;
  }
  if (*value == '\0') {
    Fail(setting, -22);
  }
  *value++ = '\0';
  const long dir = Require("/proc/sys", Call(SYS_openat, kAtCwd, Address("/proc/sys"), 0));
  const long file = Require(setting, Call(SYS_openat, dir, Address(setting), kOpenForWriting));
  Require(setting, Call(SYS_write, file, Address(value), static_cast<long>(LengthOf(value))));
  Call(SYS_close, file);
  Call(SYS_close, dir);
}

/// Waits until the engine has taken note of the pid. It has ended: so does this.
void AwaitEngine() {
  char byte = 0;
  long got = 0;
  do {
    got = Call(SYS_read, kEngine, Address(&byte), 1);
  } while (got == kErrnoIntr);
  if (got != 1) {
    End(1);
  }
}

[[noreturn]] void Hold() {
  Call(SYS_close, kEngine);
  constexpr unsigned long kTerm = 1UL << (SIGTERM - 1);
  constexpr unsigned long kInt = 1UL << (SIGINT - 1);
  constexpr unsigned long kChild = 1UL << (SIGCHLD - 1);
  const unsigned long waited = kTerm | kInt | kChild;
  for (;;) {
    const long signal = Call(SYS_rt_sigtimedwait, Address(&waited), 0, 0, kSignalSetSize);
    if (signal == SIGTERM || signal == SIGINT) {
      End(0);
    }
    while (Call(SYS_wait4, -1, 0, kNoWait, 0) > 0) {
    }
  }
}

/// In a pid namespace of its own the holder is a child, so that it is that one's first
/// process. This one goes when the child has let go of it, and the keeper takes the child.
[[noreturn]] void HoldPids() {
  int ends[2] = {-1, -1};
  Require("pipe2", Call(SYS_pipe2, Address(ends), 0));
  const long child = Require("clone", Call(SYS_clone, CLONE_NEWPID | SIGCHLD));
  if (child == 0) {
    // Until the engine knows of it, it must not outlive the one that the engine knows.
    Call(SYS_prctl, kParentDeathSignal, SIGKILL);
    Call(SYS_close, ends[0]);
    AwaitEngine();
    Call(SYS_prctl, kParentDeathSignal, 0);
    Call(SYS_close, ends[1]);
    Hold();
  }
  Call(SYS_close, ends[1]);
  Line line;
  line.Add(child);
  line.Add("\n");
  line.Send();
  Call(SYS_close, kEngine);
  char none = 0;
  while (Call(SYS_read, ends[0], Address(&none), 1) == kErrnoIntr) {
  }
  End(0);
}

void SetUp(char** arguments, bool& pids) {
  const char* name = nullptr;
  long made = 0;
  char** settings = arguments;
  for (char** one = arguments; *one != nullptr; ++one) {
    switch ((*one)[1]) {
      case 'i':
        made |= CLONE_NEWIPC;
        break;
      case 'u':
        made |= CLONE_NEWUTS;
        break;
      case 'p':
        pids = true;
        break;
      case 'h':
        name = *++one;
        break;
      case 's':
        *settings++ = *++one;
        break;
      default:
        Fail(*one, -22);
    }
  }
  *settings = nullptr;
  if (made != 0) {
    Require("unshare", Call(SYS_unshare, made));
  }
  if (name != nullptr) {
    Require("sethostname", Call(SYS_sethostname, Address(name), static_cast<long>(LengthOf(name))));
  }
  for (; *arguments != nullptr; ++arguments) {
    WriteSysctl(*arguments);
  }
}

}  // namespace

extern "C" [[noreturn, gnu::used]] void Main(long* stack) {
  // argc, then argv. Source: System V ABI, process initialization.
  char** const arguments = reinterpret_cast<char**>(stack + 1);
  const unsigned long all = ~0UL;
  Call(SYS_rt_sigprocmask, 0, Address(&all), 0, kSignalSetSize);
  bool pids = false;
  SetUp(arguments + 1, pids);
  if (pids) {
    HoldPids();
  }
  Line line;
  line.Add(Call(SYS_getpid));
  line.Add("\n");
  line.Send();
  AwaitEngine();
  Hold();
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call Main\n");
#else
asm(".globl _start\n_start:\n  mov x0, sp\n  bl Main\n");
#endif
