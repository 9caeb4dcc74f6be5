// SPDX-License-Identifier: Apache-2.0
#include "core/shim/containerd_release.h"

#include <elf.h>

#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::shim {
namespace {

template <class T>
void Append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string WithLength(const std::string& text) {
  std::string bytes;
  for (size_t left = text.size(); true; left >>= 7) {
    bytes.push_back(static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0)));
    if (left <= 0x7F) {
      return bytes + text;
    }
  }
}

/// What Go's linker leaves of a program with that main package.
std::string BuildInfo(const std::string& package) {
  std::string info = "\xff Go buildinf:";
  info.push_back(8);
  info.push_back(2);
  info.resize(32, '\0');
  return info + WithLength("go1.24.4") +
         WithLength(
             "0123456789abcdef"
             "path\t" +
             package + "\n" + std::string(300, 'm'));
}

/// A program with that one section, and the section of names.
std::string Program(const std::string& info) {
  const std::string names("\0.go.buildinfo\0.shstrtab\0", 25);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  header.e_shoff = sizeof(header) + info.size() + names.size();
  std::array<Elf64_Shdr, 3> sections{};
  sections[1].sh_name = 1;
  sections[1].sh_offset = sizeof(header);
  sections[1].sh_size = info.size();
  sections[2].sh_name = 15;
  sections[2].sh_offset = sizeof(header) + info.size();
  sections[2].sh_size = names.size();
  std::string bytes;
  Append(bytes, header);
  bytes += info + names;
  Append(bytes, sections);
  return bytes;
}

class ContainerdRelease : public testing::Test {
 protected:
  int MajorOf(const std::string& program) {
    EXPECT_TRUE(WriteExisting(path_, program));
    return ContainerdMajor(path_);
  }

  void SetUp() override { ASSERT_TRUE(ReplaceFile(path_, "", 0644)); }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string path_ = dir_.path() + "/program";
};

TEST_F(ContainerdRelease, IsToldByThePathOfItsMainPackage) {
  EXPECT_EQ(MajorOf(Program(BuildInfo("github.com/containerd/containerd/cmd/containerd"))), 1);
  EXPECT_EQ(MajorOf(Program(BuildInfo("github.com/containerd/containerd/v2/cmd/containerd"))), 2);
}

TEST_F(ContainerdRelease, OfAnythingElseIsNone) {
  EXPECT_EQ(MajorOf(Program(BuildInfo("github.com/k3s-io/k3s/cmd/server"))), 0);
  EXPECT_EQ(MajorOf(Program(BuildInfo("github.com/containerd/containerd/v2/cmd/ctr"))), 0);
  EXPECT_EQ(MajorOf(Program("something else")), 0);
  EXPECT_EQ(ContainerdMajor("/proc/self/exe"), 0);
  EXPECT_EQ(ContainerdMajor("/no/such/file"), 0);
}

TEST_F(ContainerdRelease, CutOffAnywhereIsNone) {
  const std::string whole =
      Program(BuildInfo("github.com/containerd/containerd/v2/cmd/containerd"));
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_EQ(MajorOf(whole.substr(0, size)), 0) << size;
  }
}

}  // namespace
}  // namespace gantry::shim
