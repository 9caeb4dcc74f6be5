// SPDX-License-Identifier: Apache-2.0
//
// Which inits get the client's fifo, and which pipes of their own.
#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;

class ProcessStdio : public TaskTest {
 protected:
  /// Creates a container whose config.json has these parts, and gives the paths of the
  /// fifos that its init has as stdout and stderr; empty for what is none.
  std::vector<std::string> PathsOfInit(const std::string& of_process,
                                       const std::string& namespaces) {
    const std::string bundle = Announce("c1");
    const std::string spec =
        Format(R"({{"ociVersion":"1.2.0","process":{{"args":["/bin/true"],"cwd":"/"{}}},)"
               R"("root":{{"path":"rootfs"}},"linux":{{"namespaces":[{}]}}}})",
               of_process, namespaces);
    EXPECT_TRUE(ReplaceFile(bundle + "/config.json", spec, 0644));
    std::vector<std::string> paths;
    backend_.UseContext([&](ContainerContext& context, bool) -> Status {
      GANTRY_TRY(const Stdio stdio, context.init().TakeStdio());
      EXPECT_TRUE(stdio.out.fd && stdio.err.fd);
      paths = {stdio.out.path, stdio.err.path};
      return {};
    });
    pb::CreateTaskRequest request = CreateRequest("c1");
    request.set_stdout(out_.path);
    request.set_stderr(err_.path);
    const auto created = Ask<pb::CreateTaskResponse>("Create", request, "c1");
    EXPECT_TRUE(created) << created.error().message;
    return paths;
  }

  /// With a client that reads.
  struct Fifo {
    explicit Fifo(std::string name) : path(std::move(name)) {
      EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
      client.reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }

    std::string path;
    UniqueFd client;
  };

  Fifo out_{dir_.path() + "/out"};
  Fifo err_{dir_.path() + "/err"};
};

constexpr const char* kOwnPids = R"({"type":"pid"})";

TEST_F(ProcessStdio, OfAnInitWithPidsOfItsOwnIsTheClientsFifo) {
  EXPECT_THAT(PathsOfInit("", kOwnPids), ElementsAre(out_.path, err_.path));
}

TEST_F(ProcessStdio, OfAnInitInThePidsOfOthersIsItsOwn) {
  EXPECT_THAT(PathsOfInit("", R"({"type":"pid","path":"/proc/1/ns/pid"})"), ElementsAre("", ""));
}

TEST_F(ProcessStdio, OfAnInitInTheHostsPidsIsItsOwn) {
  EXPECT_THAT(PathsOfInit("", ""), ElementsAre("", ""));
}

TEST_F(ProcessStdio, OfWhatIsConfinedByAProfileIsItsOwn) {
  EXPECT_THAT(PathsOfInit(R"(,"apparmorProfile":"some-profile")", kOwnPids), ElementsAre("", ""));
}

TEST_F(ProcessStdio, OfWhatIsConfinedByALabelIsItsOwn) {
  EXPECT_THAT(PathsOfInit(R"(,"selinuxLabel":"system_u:system_r:container_t:s0")", kOwnPids),
              ElementsAre("", ""));
}

TEST_F(ProcessStdio, OfWhatHasAnEmptyProfileIsTheClientsFifo) {
  EXPECT_THAT(PathsOfInit(R"(,"apparmorProfile":"","selinuxLabel":"")", kOwnPids),
              ElementsAre(out_.path, err_.path));
}

}  // namespace
}  // namespace gantry::task
