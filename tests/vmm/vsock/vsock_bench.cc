// SPDX-License-Identifier: Apache-2.0
//
// vmm_vsock_bench [ROUNDS]: gantry-vsock against rust-vmm's vhost-device-vsock, each with a guest
// of its own that runs all the time, measured in turns. For each figure it prints the median of the
// rounds and how many times better ours is. Without KVM the guest takes most of the time: what it
// does for a device is in the figures, too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "tests/vmm/vsock/streams_guest.h"

namespace gantry::vmm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kBulk = 64 << 20;
constexpr int kEchoes = 500;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string BytesOf(uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

double Median(std::vector<double> all) {
  std::ranges::sort(all);
  return all.empty() ? 0 : all[all.size() / 2];
}

/// Megabytes in a second.
Result<double> ToHost(StreamsGuest& machine) {
  GANTRY_TRY(const UniqueFd socket, machine.Dial(5001));
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(WriteTo(socket.get(), BytesOf(kBulk)));
  constexpr size_t kPart = 1 << 20;
  for (uint64_t got = 0; got < kBulk; got += kPart) {
    GANTRY_CHECK_OK(ReadFrom(socket.get(), kPart));
  }
  return static_cast<double>(kBulk) / 1e6 / Since(begin);
}

Result<double> ToGuest(StreamsGuest& machine) {
  GANTRY_TRY(const UniqueFd socket, machine.Dial(5002));
  const std::string part(1 << 20, 'x');
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(WriteTo(socket.get(), BytesOf(kBulk)));
  for (uint64_t put = 0; put < kBulk; put += part.size()) {
    GANTRY_CHECK_OK(WriteTo(socket.get(), part));
  }
  GANTRY_CHECK_OK(ReadFrom(socket.get(), sizeof(uint64_t)));
  return static_cast<double>(kBulk) / 1e6 / Since(begin);
}

/// Microseconds of an echo.
Result<double> Echo(StreamsGuest& machine) {
  GANTRY_TRY(const UniqueFd socket, machine.Dial(5000));
  const std::string text(64, 'e');
  std::vector<double> all;
  for (int i = 0; i < kEchoes; ++i) {
    const auto begin = Clock::now();
    GANTRY_CHECK_OK(WriteTo(socket.get(), text));
    GANTRY_CHECK_OK(ReadFrom(socket.get(), text.size()));
    all.push_back(Since(begin) * 1e6);
  }
  return Median(std::move(all));
}

/// Microseconds from CONNECT to an answer.
Result<double> Dial(StreamsGuest& machine) {
  std::vector<double> all;
  for (int i = 0; i < 50; ++i) {
    const auto begin = Clock::now();
    GANTRY_TRY(const UniqueFd socket, machine.Dial(5000));
    GANTRY_CHECK_OK(WriteTo(socket.get(), "x"));
    GANTRY_CHECK_OK(ReadFrom(socket.get(), 1));
    all.push_back(Since(begin) * 1e6);
  }
  return Median(std::move(all));
}

/// KB of memory that the device's process has alone or shares in proportion, without the guest's.
double Memory(StreamsGuest& machine) {
  const std::string text =
      ReadFile(Format("/proc/{}/smaps", machine.guest().vsock().process().pid().value), 4 << 20)
          .value_or("");
  double sum = 0;
  bool is_guest = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.find('-') != std::string::npos && line.find(" r") != std::string::npos) {
      is_guest = line.find("memory-backend-memfd") != std::string::npos;
    } else if (line.starts_with("Pss:") && !is_guest) {
      sum += std::atof(line.c_str() + 4);
    }
  }
  return sum;
}

struct Row {
  const char* name;
  Result<double> (*measure)(StreamsGuest&);
  bool less_is_better;
};

constexpr Row kRows[] = {
    {"guest to host, MB/s", ToHost, false},
    {"host to guest, MB/s", ToGuest, false},
    {"echo of 64 bytes, us", Echo, true},
    {"CONNECT and echo, us", Dial, true},
};

Result<double> Of(const char* who, const Row& row, StreamsGuest& machine) {
  auto measured = row.measure(machine);
  if (!measured) {
    return std::unexpected(std::move(measured).error().Within(
        Format("{}, {}: {}", who, row.name, machine.guest().vsock().Log())));
  }
  return measured;
}

Status Measure(int rounds) {
  GANTRY_TRY(const auto ours, StreamsGuest::Boot(VsockProgram::kOurs));
  GANTRY_TRY(const auto peer, StreamsGuest::Boot(VsockProgram::kPeer));
  const double our_memory = Memory(*ours);
  const double their_memory = Memory(*peer);
  std::vector<std::pair<std::vector<double>, std::vector<double>>> figures(std::size(kRows));
  for (int round = 0; round < rounds; ++round) {
    for (size_t row = 0; row < std::size(kRows); ++row) {
      GANTRY_TRY(const double one, Of("ours", kRows[row], *ours));
      GANTRY_TRY(const double other, Of("rust-vmm", kRows[row], *peer));
      figures[row].first.push_back(one);
      figures[row].second.push_back(other);
    }
  }
  std::printf("%-24s %10s %10s %8s\n", "", "ours", "rust-vmm", "times");
  for (size_t row = 0; row < std::size(kRows); ++row) {
    const double one = Median(figures[row].first);
    const double other = Median(figures[row].second);
    std::printf("%-24s %10.1f %10.1f %8.2f\n", kRows[row].name, one, other,
                kRows[row].less_is_better ? other / one : one / other);
  }
  std::printf("%-24s %10.1f %10.1f %8.2f\n", "memory when idle, KB", our_memory, their_memory,
              their_memory / our_memory);
  return {};
}

}  // namespace
}  // namespace gantry::vmm

int main(int argc, char** argv) {
  for (const std::string& missing :
       {gantry::vmm::TestImage::Get().why_not, gantry::vmm::WhyNoPeer()}) {
    if (!missing.empty()) {
      std::fprintf(stderr, "vmm_vsock_bench: %s\n", missing.c_str());
      return 2;
    }
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  if (const gantry::Status done = gantry::vmm::Measure(rounds); !done) {
    std::fprintf(stderr, "vmm_vsock_bench: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
