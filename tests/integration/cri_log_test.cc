// SPDX-License-Identifier: Apache-2.0
//
// Logs that are rotated as the kubelet does it: the file is renamed, and
// containerd told to open a new one, while the container writes.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriLog : public CriPodTest {
 protected:
  /// What the container wrote, of all its log's files in turn: without the time, the
  /// stream and the tag; a line that was split is one again.
  static std::string Written(const std::vector<std::string>& paths) {
    std::string written;
    for (const std::string& path : paths) {
      std::istringstream lines(ReadText(path));
      for (std::string line; std::getline(lines, line);) {
        const size_t tag = line.find(' ', line.find(' ') + 1) + 1;
        written += line.substr(tag + 2) + (line[tag] == 'F' ? "\n" : "");
      }
    }
    return written;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriLog, kSandboxers, SandboxerName);
INSTANTIATE_TEST_SUITE_P(Streaming, CriLog, kStreamingSandboxers, SandboxerName);

TEST_P(CriLog, LosesNothingWhenRotated) {
  constexpr int kRotations = 5;
  const PodConfig config = Pod();
  const std::string id = RunContainerIn(
      RunPod(config), config, "one",
      {"sh", "-c",
       "i=0; while [ ! -e /stop ]; do i=$((i+1)); echo line-$i; done; echo end-$i; sleep 1000"});
  const std::string path = config.log_directory + "/one.log";
  std::vector<std::string> paths;
  for (int i = 0; i < kRotations; ++i) {
    ASSERT_TRUE(WaitForText(path, "line-"));
    paths.push_back(path + "." + std::to_string(i));
    std::filesystem::rename(path, paths.back());
    const Status reopened = cri().ReopenLog(id);
    ASSERT_TRUE(reopened) << reopened.error().message;
  }
  ASSERT_TRUE(WaitForText(path, "line-"));
  paths.push_back(path);
  EXPECT_EQ(Exec(id, {"touch", "/stop"}).exit_code, 0);
  ASSERT_TRUE(WaitForText(path, "end-"));
  const std::string written = Written(paths);
  const size_t end = written.find("end-");
  const int count = std::stoi(written.substr(end + 4));
  std::string expected;
  for (int i = 1; i <= count; ++i) {
    expected += "line-" + std::to_string(i) + "\n";
  }
  EXPECT_TRUE(written.substr(0, end) == expected)
      << "of " << count << " lines, some are lost or doubled; first at byte "
      << std::ranges::mismatch(written, expected).in1 - written.begin();
}

TEST_P(CriLog, IsOpenedAgainForOneOfMany) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const Words talks{"sh", "-c", "until [ -e /stop ]; do sleep 0.05; done; echo late; sleep 1000"};
  const std::string first = RunContainerIn(pod, config, "first", talks);
  const std::string second = RunContainerIn(pod, config, "second", talks);
  const std::string path = config.log_directory + "/first.log";
  std::filesystem::rename(path, path + ".old");
  ASSERT_TRUE(cri().ReopenLog(first));
  for (const std::string& id : {first, second}) {
    EXPECT_EQ(Exec(id, {"touch", "/stop"}).exit_code, 0);
  }
  EXPECT_TRUE(WaitForText(path, "stdout F late\n")) << ReadText(path);
  EXPECT_TRUE(WaitForText(config.log_directory + "/second.log", "stdout F late\n"));
  EXPECT_EQ(ReadText(path + ".old"), "");
}

}  // namespace
}  // namespace gantry::e2e
