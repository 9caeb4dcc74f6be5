// SPDX-License-Identifier: Apache-2.0
#include "core/os/memory.h"

#include <link.h>

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace gantry::os {
namespace {

using ::testing::ElementsAre;

/// KiB of pages of files that this process has mapped.
size_t MappedOfFiles() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) {
      return std::stoul(line.substr(8));
    }
  }
  return 0;
}

/// Reads a byte of each page of the program's own code; its size in KiB.
int TouchCode(dl_phdr_info* info, size_t /*size*/, void* result) {
  constexpr size_t kPage = 4096;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) {
      continue;
    }
    const auto* code =
        reinterpret_cast<const volatile unsigned char*>(info->dlpi_addr + segment.p_vaddr);
    unsigned sum = 0;
    for (size_t at = 0; at < segment.p_memsz; at += kPage) {
      sum += code[at];
    }
    *static_cast<size_t*>(result) = sum == 0 ? 0 : segment.p_memsz / 1024;
  }
  return 1;
}

TEST(MemoryTest, UnmapsCodeThatIsNotUsed) {
  size_t code = 0;
  dl_iterate_phdr(TouchCode, &code);
  ASSERT_GT(code, 0U);
  const size_t before = MappedOfFiles();
  ReleaseMemory();
  EXPECT_LT(MappedOfFiles() + code / 4, before) << "of " << code << " KiB of code";
}

TEST(MemoryTest, AddsTunablesToAnEnvironment) {
  std::vector<std::string> environment = {"A=b"};
  AddMemoryTunables(environment);
  EXPECT_THAT(environment, ElementsAre("A=b", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"));
}

TEST(MemoryTest, LeavesTheOperatorsTunables) {
  std::vector<std::string> environment = {"GLIBC_TUNABLES=glibc.malloc.check=3", "A=b"};
  AddMemoryTunables(environment);
  EXPECT_THAT(environment, ElementsAre("GLIBC_TUNABLES=glibc.malloc.check=3", "A=b"));
}

}  // namespace
}  // namespace gantry::os
