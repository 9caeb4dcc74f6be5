// SPDX-License-Identifier: Apache-2.0
//
// A guest of streams: says to port 1025 of the host that it is there, as soon as it has a vsock
// device, and serves these ports, each until its client leaves:
//
//     5000  echo, for any number of clients at once
//     5001  reads a number of 8 bytes and writes as many bytes
//     5002  reads a number of 8 bytes, then as many bytes, and writes the number
//     5003  reads until the end, then writes all of it (8 MiB at most) and ends
//     5004  reads a port of 4 bytes, dials it and writes the errno of 4 bytes
//     5005  writes 1 MiB, ends its half, reads until the end, and dials 1026 with how much it was
#include <linux/vm_sockets.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/first.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm {
namespace {

constexpr int kPorts = 6;
constexpr uint32_t kFirstPort = 5000;
constexpr size_t kBuffer = 256 * 1024;
/// Linux makes a packet of more than 32 KiB of many parts (since 6.12.46), and rust-vmm's device,
/// which vmm_vsock_bench compares ours with, drops those of more than two.
constexpr size_t kSourcePart = 16 * 1024;
constexpr int kClients = 512;

char g_buffer[kBuffer];

sockaddr_vm AddressOf(uint32_t cid, uint32_t port) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = cid;
  address.svm_port = port;
  return address;
}

/// A descriptor, or minus the errno.
int Dial(uint32_t port) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_vm address = AddressOf(VMADDR_CID_HOST, port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  return -error;
}

int Listen(uint32_t port) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_vm address = AddressOf(VMADDR_CID_ANY, port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, kClients) != 0) {
    printf("init: listen on %u: %s\n", port, strerror(errno));
  }
  return fd;
}

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = write(fd, data, size);
    if (sent <= 0) {
      return false;
    }
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReadAll(int fd, void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got <= 0) {
      return false;
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

/// For all clients in one process.
[[noreturn]] void Echo(int listener) {
  static pollfd all[kClients + 1];
  int count = 1;
  all[0] = {listener, POLLIN, 0};
  for (;;) {
    poll(all, static_cast<nfds_t>(count), -1);
    for (int i = count - 1; i > 0; --i) {
      if (all[i].revents == 0) {
        continue;
      }
      const ssize_t got = read(all[i].fd, g_buffer, sizeof(g_buffer));
      if (got <= 0 || !WriteAll(all[i].fd, g_buffer, static_cast<size_t>(got))) {
        close(all[i].fd);
        all[i] = all[--count];
      }
    }
    if (all[0].revents != 0 && count <= kClients) {
      all[count++] = {accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), POLLIN, 0};
    }
  }
}

void Source(int client) {
  uint64_t left = 0;
  ReadAll(client, &left, sizeof(left));
  while (left > 0) {
    const size_t size = left < kSourcePart ? left : kSourcePart;
    if (!WriteAll(client, g_buffer, size)) {
      return;
    }
    left -= size;
  }
  // Whoever reads ends it.
  char one = 0;
  static_cast<void>(!read(client, &one, 1));
}

void Sink(int client) {
  uint64_t wanted = 0;
  ReadAll(client, &wanted, sizeof(wanted));
  for (uint64_t left = wanted; left > 0;) {
    const ssize_t got = read(client, g_buffer, left < kBuffer ? left : kBuffer);
    if (got <= 0) {
      return;
    }
    left -= static_cast<uint64_t>(got);
  }
  WriteAll(client, reinterpret_cast<const char*>(&wanted), sizeof(wanted));
  char one = 0;
  static_cast<void>(!read(client, &one, 1));
}

void Return(int client) {
  constexpr size_t kMost = 8 << 20;
  auto* const all = static_cast<char*>(malloc(kMost));
  size_t size = 0;
  ssize_t got = 0;
  while (size < kMost && (got = read(client, all + size, kMost - size)) > 0) {
    size += static_cast<size_t>(got);
  }
  WriteAll(client, all, size);
}

void DialFor(int client) {
  uint32_t port = 0;
  ReadAll(client, &port, sizeof(port));
  const int fd = Dial(port);
  const int32_t error = fd < 0 ? -fd : 0;
  WriteAll(client, reinterpret_cast<const char*>(&error), sizeof(error));
}

void HalfSource(int client) {
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes; ++i) {
    WriteAll(client, g_buffer, kBuffer);
  }
  shutdown(client, SHUT_WR);
  uint64_t count = 0;
  ssize_t got = 0;
  while ((got = read(client, g_buffer, kBuffer)) > 0) {
    count += static_cast<uint64_t>(got);
  }
  const int fd = Dial(1026);
  if (fd >= 0) {
    WriteAll(fd, reinterpret_cast<const char*>(&count), sizeof(count));
  }
}

[[noreturn]] void Serve(uint32_t port) {
  const int listener = Listen(port);
  if (port == kFirstPort) {
    Echo(listener);
  }
  void (*const all[])(int) = {Source, Sink, Return, DialFor, HalfSource};
  for (;;) {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      continue;
    }
    if (fork() == 0) {
      all[port - kFirstPort - 1](client);
      close(client);
      _exit(0);
    }
    close(client);
  }
}

/// As soon as there is a device, which may be added later; the host listens before it is.
int DialTheHost(guest::DeviceEvents& events) {
  int host = Dial(1025);
  while (host < 0) {
    events.Await(Deadline::max());
    host = Dial(1025);
  }
  return host;
}

int Main() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  auto events = guest::DeviceEvents::Listen();
  if (!events) {
    printf("streams: %s\n", events.error().message.c_str());
    return 1;
  }
  for (const Status& done : {guest::MountSystem(), guest::LoadModules("/modules/early")}) {
    if (!done) {
      printf("streams: %s\n", done.error().message.c_str());
    }
  }
  for (uint32_t port = kFirstPort; port < kFirstPort + kPorts; ++port) {
    if (fork() == 0) {
      Serve(port);
    }
  }
  WriteAll(DialTheHost(*events), "ready", 5);
  for (;;) {
    pause();
  }
}

}  // namespace
}  // namespace gantry::vmm

int main() { return gantry::vmm::Main(); }
