// SPDX-License-Identifier: Apache-2.0
//
// What nobody should send, sent: each gets a clear error of the right class,
// and everybody else's containers go on.

#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include <gantry/protowire.h>

#include "tests/harness/e2e_test.h"
#include "tests/harness/raw_shim.h"

namespace gantry::e2e {
namespace {

Code CodeOf(const Status& status) { return status ? Code::kOk : status.error().code; }

std::string TextOf(const Status& status) { return status ? "ok" : status.error().message; }

class BadInput : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && settings().stock()) {
      GTEST_SKIP() << "asks for what the stock shim does not promise";
    }
  }

  // An instance that is there for one wrong call, and cleaned up after it.
  Status CreateWith(const std::string& suffix, const std::function<void(const RawShim&)>& spoil,
                    const std::function<std::string(const RawShim&)>& request) {
    RawShim shim(node(), Id(suffix));
    const Output started = shim.Start();
    EXPECT_EQ(started.status, 0) << started.Text();
    spoil(shim);
    Status created = shim.Call("Create", request(shim));
    EXPECT_EQ(CodeOf(shim.Call("Delete", shim.IdRequest())), Code::kNotFound);
    const Output deleted = shim.Delete();
    EXPECT_EQ(deleted.status, 0) << deleted.Text();
    EXPECT_EQ(MountsBelow(shim.bundle()).size(), 0U);
    return created;
  }

  Status CreateWithSpec(const std::string& suffix, const std::string& spec) {
    return CreateWith(
        suffix, [&](const RawShim& shim) { WriteText(shim.bundle() + "/config.json", spec); },
        [](const RawShim& shim) { return shim.CreateRequest(shim.bundle()); });
  }

  Status CreateIn(const std::string& suffix,
                  const std::function<std::string(const RawShim&)>& bundle) {
    return CreateWith(
        suffix, [](const RawShim&) {},
        [&](const RawShim& shim) { return shim.CreateRequest(bundle(shim)); });
  }

  static std::string Mount(const std::string& type, const std::string& source,
                           const std::string& option) {
    ProtoWriter mount;
    mount.Text(1, type);
    mount.Text(2, source);
    mount.Text(4, option);
    return mount.Take();
  }

  // With the runc shim's options, naming an OCI binary.
  static std::string WithBinary(const RawShim& shim, const std::string& binary) {
    ProtoWriter options;
    options.Text(6, binary);
    ProtoWriter any;
    any.Text(1, "containerd.runc.v1.Options");
    any.Bytes(2, options.str());
    ProtoWriter field;
    field.Bytes(10, any.str());
    return shim.CreateRequest(shim.bundle()) + field.str();
  }

  Status CreateWithBinary(const std::string& suffix, const std::string& script) {
    const std::string path = settings().root + "/" + Id(suffix) + ".sh";
    if (!script.empty()) {
      WriteText(path, "#!/bin/sh\n" + script);
      std::filesystem::permissions(path, std::filesystem::perms::all);
    }
    return CreateWith(
        suffix, [](const RawShim&) {}, [&](const RawShim& shim) { return WithBinary(shim, path); });
  }

  void ExpectOthersServed() {
    const Output output = RunContainer({"--rm"}, Id("good"), {"echo", "fine"});
    EXPECT_EQ(output.out, "fine\n") << output.Text();
  }
};

/// An OCI binary that never ends.
class Hanging {
 public:
  explicit Hanging(std::string path) : path_(std::move(path)) {
    WriteText(path_, "#!/bin/sh\nexec " + command_ + "\n");
    std::filesystem::permissions(path_, std::filesystem::perms::all);
  }

  const std::string& path() const { return path_; }

  /// Waits until none runs.
  bool Gone() const {
    const auto hangs = [&](const HostProcess& process) {
      return process.command == command_ + " ";
    };
    return Eventually([&] { return Processes(hangs).empty(); });
  }

 private:
  std::string path_;
  /// No other run's.
  std::string command_ = "sleep " + std::to_string(100000 + getpid());
};

TEST_F(BadInput, OfIdsIsRefusedByTheShim) {
  RawShim shim(node(), Id());
  const std::string ids[] = {"a/b", "..",   ".",  "../../etc",
                             "a b", "a\nb", "-x", std::string(10000, 'x')};
  for (const std::string& id : ids) {
    const Output output = shim.Execute(id, "start");
    EXPECT_NE(output.status, 0) << id.substr(0, 40);
    EXPECT_NE(output.status, Output::kTimedOut) << id.substr(0, 40);
    EXPECT_NE(output.err, "") << id.substr(0, 40);
  }
  ExpectOthersServed();
}

TEST_F(BadInput, OnStdinOfStartDoesNoHarm) {
  RawShim shim(node(), Id());
  for (const std::string& input :
       {std::string("\xff\xff\xff\xff garbage"), std::string(300000, '{'),
        std::string("\x0a\xff\xff\xff\x7f", 5)}) {
    const Output output = shim.Execute(Id(), "start", input);
    EXPECT_EQ(output.status, 0) << output.Text();
    EXPECT_NE(output.out.find("unix://"), std::string::npos) << output.Text();
    EXPECT_EQ(shim.Delete().status, 0);
  }
  ExpectOthersServed();
}

TEST_F(BadInput, AsConfigIsAnInvalidArgument) {
  const std::string good = WorkingSpec("/x");
  const std::pair<const char*, std::string> specs[] = {
      {"a", ""},
      {"b", good.substr(0, good.size() / 2)},
      {"c", "not json"},
      {"d", "[]"},
      {"e", R"({"ociVersion":"1.0.2","process":5,"root":{"path":"rootfs"}})"},
      {"f", R"({"ociVersion":"1.0.2","process":{"args":"sh"},"root":[]})"},
      {"g", "{\"a\":\"" + std::string(50U << 20, 'x') + "\"}"},
      {"h", std::string(100000, '[')},
  };
  for (const auto& [suffix, spec] : specs) {
    const Status created = CreateWithSpec(suffix, spec);
    EXPECT_EQ(CodeOf(created), Code::kInvalidArgument) << suffix << ": " << TextOf(created);
    EXPECT_NE(TextOf(created).find("config.json"), std::string::npos) << TextOf(created);
  }
  ExpectOthersServed();
}

TEST_F(BadInput, AsBundleIsRefused) {
  const Status missing = CreateIn("a", [](const RawShim&) { return "/no/such/bundle"; });
  EXPECT_FALSE(missing);
  EXPECT_NE(TextOf(missing).find("/no/such/bundle"), std::string::npos) << TextOf(missing);
  EXPECT_FALSE(CreateIn("b", [](const RawShim& shim) { return shim.bundle() + "/config.json"; }));
  EXPECT_FALSE(CreateIn("c", [](const RawShim&) { return ""; }));
  EXPECT_FALSE(CreateIn("d", [](const RawShim&) { return "relative/bundle"; }));
  EXPECT_FALSE(CreateIn("e", [](const RawShim& shim) {
    const std::string link = shim.bundle() + "/elsewhere";
    std::filesystem::create_directory_symlink("/etc", link);
    return link;
  }));
  ExpectOthersServed();
}

TEST_F(BadInput, WithoutConfigIsRefused) {
  const Status created = CreateWith(
      "", [](const RawShim& shim) { std::filesystem::remove(shim.bundle() + "/config.json"); },
      [](const RawShim& shim) { return shim.CreateRequest(shim.bundle()); });
  EXPECT_FALSE(created);
  EXPECT_NE(TextOf(created).find("config.json"), std::string::npos) << TextOf(created);
}

TEST_F(BadInput, AsMountIsUndone) {
  const Status created = CreateWith(
      "", [](const RawShim&) {},
      [&](const RawShim& shim) {
        ProtoWriter mounts;
        mounts.Bytes(3, Mount("tmpfs", "tmpfs", "size=1m"));
        mounts.Bytes(3, Mount("nosuchfs", "none", "ro"));
        return shim.CreateRequest(shim.bundle()) + mounts.str();
      });
  EXPECT_FALSE(created);
  EXPECT_NE(TextOf(created).find("nosuchfs"), std::string::npos) << TextOf(created);
}

TEST_F(BadInput, AsStdioIsRefused) {
  const std::string paths[] = {"/no/such/fifo", "/etc/passwd", "unknown://x", "binary:///no/such"};
  int number = 0;
  for (const std::string& path : paths) {
    const Status created = CreateWith(
        std::to_string(number++), [](const RawShim&) {},
        [&](const RawShim& shim) {
          ProtoWriter stdio;
          stdio.Text(6, path);
          return shim.CreateRequest(shim.bundle()) + stdio.str();
        });
    EXPECT_FALSE(created) << path;
  }
  ExpectOthersServed();
}

TEST_F(BadInput, OfAnOciBinaryIsNamed) {
  Status created = CreateWithBinary("missing", "");
  EXPECT_FALSE(created);
  EXPECT_NE(TextOf(created).find(".sh"), std::string::npos) << TextOf(created);
  created = CreateWithBinary("garbage", "echo what-a-mess >&2; exit 1\n");
  EXPECT_FALSE(created);
  EXPECT_NE(TextOf(created).find(".sh"), std::string::npos) << TextOf(created);
  EXPECT_FALSE(CreateWithBinary("killed", "kill -9 $$\n"));
  EXPECT_FALSE(CreateWithBinary("idle", "exit 0\n"));
  ExpectOthersServed();
}

TEST_F(BadInput, ThatHangsIsKilledAtTheHandlersLimit) {
  const Hanging binary(settings().root + "/hang.sh");
  RawShim shim(node(), Id(), "hasty");
  ASSERT_EQ(shim.Start().status, 0);
  const Status created = shim.Call("Create", shim.CreateRequest(shim.bundle()));
  EXPECT_EQ(CodeOf(created), Code::kDeadlineExceeded) << TextOf(created);
  EXPECT_NE(TextOf(created).find("hang.sh"), std::string::npos) << TextOf(created);
  EXPECT_EQ(shim.Delete().status, 0);
  EXPECT_TRUE(binary.Gone());
  ExpectOthersServed();
}

TEST_F(BadInput, ThatHangsIsKilledAtTheCallersDeadline) {
  const Hanging binary(settings().root + "/" + Id() + ".sh");
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  const Status created =
      shim.Call("Create", WithBinary(shim, binary.path()), std::chrono::seconds(1));
  EXPECT_EQ(CodeOf(created), Code::kDeadlineExceeded) << TextOf(created);
  EXPECT_TRUE(binary.Gone());
  EXPECT_EQ(shim.Delete().status, 0);
  ExpectOthersServed();
}

TEST_F(BadInput, ForAnUnknownContainerIsNotFound) {
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  for (const char* method : {"Start", "Delete", "State", "Wait", "Kill", "Pids", "Pause", "Resume",
                             "ResizePty", "CloseIO", "Stats", "Exec", "Update", "Checkpoint"}) {
    const Status status = shim.Call(method, shim.IdRequest());
    EXPECT_EQ(CodeOf(status), Code::kNotFound) << method << ": " << TextOf(status);
  }
  EXPECT_EQ(CodeOf(shim.Call("Connect", shim.IdRequest())), Code::kOk);
  EXPECT_EQ(CodeOf(shim.Call("Shutdown", shim.IdRequest())), Code::kOk);
  shim.Delete();
}

TEST_F(BadInput, AsMethodIsUnimplemented) {
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  EXPECT_EQ(CodeOf(shim.Call("Fly", "")), Code::kUnimplemented);
  EXPECT_EQ(CodeOf(shim.CallService("no.such.Service", "State", "")), Code::kUnimplemented);
  shim.Delete();
}

TEST_F(BadInput, AsPayloadIsAnInvalidArgument) {
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  const Status status = shim.Call("State", "\x0a\xff\xff\xff\x7f");
  EXPECT_EQ(CodeOf(status), Code::kInvalidArgument) << TextOf(status);
  shim.Delete();
}

TEST_F(BadInput, OnTheSocketHarmsNobodyElse) {
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  const std::string pieces[] = {
      std::string("\x00\x00", 2),                                   // Half a header, then silence.
      std::string("\x7f\xff\xff\xff\x00\x00\x00\x01\x01\x00", 10),  // 2 GB announced.
      std::string("\x00\x00\x00\x10\x00\x00\x00\x01\x01\x00half", 14),
      std::string("GET / HTTP/1.1\r\n\r\n"),
      std::string(100000, '\xff'),
  };
  std::vector<UniqueFd> open;
  for (const std::string& piece : pieces) {
    open.push_back(shim.Dial());
    ASSERT_TRUE(open.back());
    send(open.back().get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_EQ(CodeOf(shim.Call("Connect", shim.IdRequest())), Code::kOk);
  ExpectOthersServed();
  open.clear();
  shim.Delete();
}

TEST_F(BadInput, OfAThousandSilentConnectionsIsBorne) {
  RawShim shim(node(), Id());
  ASSERT_EQ(shim.Start().status, 0);
  std::vector<UniqueFd> open;
  for (int i = 0; i < 1000; ++i) {
    open.push_back(shim.Dial());
  }
  EXPECT_EQ(CodeOf(shim.Call("Connect", shim.IdRequest())), Code::kOk);
  ExpectOthersServed();
  open.clear();
  shim.Delete();
}

}  // namespace
}  // namespace gantry::e2e
