// SPDX-License-Identifier: Apache-2.0
// What is asked for and cannot be.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

struct Prepared {
  int error;
  std::string why;
};

Prepared Prepare(const gantry_wasm_request& request, size_t room = 1024) {
  std::string why(room, '\0');
  struct gantry_wasm_run* run = nullptr;
  const int error = gantry_wasm_prepare(&request, &run, why.data(), room);
  return {error, why.c_str()};
}

gantry_wasm_request RequestOf(int artifact) {
  gantry_wasm_request request = {};
  request.artifact = artifact;
  request.listener = -1;
  return request;
}

int FileWith(const std::string& bytes) {
  const int file = memfd_create("artifact", MFD_CLOEXEC);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

std::string BytesOf(int file) {
  std::string bytes(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

TEST(Requests, WhatIsNoArtifactIsRefused) {
  const std::string artifact = BytesOf(ArtifactOf("exit"));
  for (const std::string& bytes :
       {std::string(), std::string("text"), std::string("\0asm\x01\0\0\0", 8),
        artifact.substr(0, 64), artifact.substr(0, artifact.size() / 2)}) {
    const int file = FileWith(bytes);
    const Prepared prepared = Prepare(RequestOf(file));
    EXPECT_EQ(prepared.error, GANTRY_WASM_INVALID) << bytes.size();
    EXPECT_THAT(prepared.why, HasSubstr("the artifact cannot be loaded"));
    close(file);
  }
}

// Another patch level, whose compiler may have had other faults.
TEST(Requests, AnArtifactOfAnotherVersionIsRefused) {
  std::string artifact = BytesOf(ArtifactOf("exit"));
  const size_t at = artifact.find("48.0.8");
  ASSERT_NE(at, std::string::npos);
  artifact.replace(at, 6, "48.0.7");
  const int file = FileWith(artifact);
  const Prepared prepared = Prepare(RequestOf(file));
  EXPECT_EQ(prepared.error, GANTRY_WASM_INVALID);
  EXPECT_THAT(prepared.why, HasSubstr("48.0.7"));
  close(file);
}

TEST(Requests, AModuleIsNoComponent) {
  gantry_wasm_request request = RequestOf(ArtifactOf("exit"));
  request.kind = GANTRY_WASM_COMMAND;
  EXPECT_EQ(Prepare(request).error, GANTRY_WASM_INVALID);
  request.entry = "one";
  EXPECT_THAT(Prepare(request).why, HasSubstr("no entry"));
  request.kind = 7;
  EXPECT_THAT(Prepare(request).why, HasSubstr("no kind 7"));
}

TEST(Requests, ADescriptorThatIsNotOpenIsSaid) {
  EXPECT_EQ(Prepare(RequestOf(-1)).error, GANTRY_WASM_INVALID);
  EXPECT_EQ(Prepare(RequestOf(1000000)).error, GANTRY_WASM_SYSTEM);
}

TEST(Requests, TheReasonIsCutToItsRoom) {
  gantry_wasm_request request = RequestOf(ArtifactOf("exit"));
  request.kind = 7;
  EXPECT_EQ(Prepare(request, 10).why, "there is ");
  EXPECT_EQ(Prepare(request, 1).why, "");
}

}  // namespace
}  // namespace gantry::wasm
