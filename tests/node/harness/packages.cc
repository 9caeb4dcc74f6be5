// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/packages.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tests/harness/host.h"

namespace gantry::node {
namespace {

std::string Folder(const std::string& release) {
  const char* const folder = std::getenv("GANTRY_NODE_PACKAGES");  // NOLINT(concurrency-mt-unsafe)
  return std::string(folder == nullptr ? "" : folder) + "/" + release;
}

Words AptWords(const Words& words) {
  Words all{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

void PackagesTest::SetUp() { ASSERT_EQ(ActiveState(kContainerdUnit), "active"); }

void PackagesTest::TearDown() {
  const std::string failed = Systemctl({"list-units", "--failed", "--plain", "--no-legend"}).out;
  EXPECT_EQ(failed.find("gantry"), std::string::npos) << failed;
}

e2e::Output PackagesTest::Install(const std::string& release) {
  Words words{"install", "--no-install-recommends", "--allow-downgrades"};
  for (const std::string& name : e2e::ListFolder(Folder(release))) {
    words.push_back(Folder(release) + "/" + name);
  }
  return e2e::RunProgram(AptWords(words), std::nullopt, e2e::kLong);
}

e2e::Output PackagesTest::Apt(const std::string& verb) {
  Words words{verb};
  for (const char* name : {"gantry", "gantry-grpc", "gantry-gvisor", "gantry-vmm", "gantry-wasm"}) {
    words.emplace_back(name);
  }
  return e2e::RunProgram(AptWords(words), std::nullopt, e2e::kLong);
}

std::string PackagesTest::Version() {
  const e2e::Output output =
      e2e::RunProgram({"dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "gantry"});
  constexpr std::string_view kInstalled = "installed ";
  return output.out.starts_with(kInstalled) ? output.out.substr(kInstalled.size()) : "";
}

std::string PackagesTest::VersionOf(const std::string& release) {
  for (const std::string& name : e2e::ListFolder(Folder(release))) {
    if (name.starts_with("gantry_")) {
      return e2e::RunProgram(
                 {"dpkg-deb", "-W", "--showformat=${Version}", Folder(release) + "/" + name})
          .out;
    }
  }
  return "no package 'gantry' in " + Folder(release);
}

void PackagesTest::Have(const std::string& release) {
  if (Version() != VersionOf(release)) {
    const e2e::Output installed = Install(release);
    ASSERT_EQ(installed.status, 0) << installed.Text();
  }
  ASSERT_EQ(Version(), VersionOf(release));
}

void PackagesTest::HaveKept() {
  if (FindTask(kept()).state == "RUNNING") {
    return;
  }
  Remove(kept());
  const e2e::Output started = CtrRun(kept(), {"sleep", "100000"}, {"-d"});
  ASSERT_EQ(started.status, 0) << started.Text();
}

std::string PackagesTest::EngineProgram() {
  std::error_code error;
  std::string program =
      std::filesystem::read_symlink("/proc/" + std::to_string(Engine()) + "/exe", error).string();
  constexpr std::string_view kDeleted = " (deleted)";
  if (program.ends_with(kDeleted)) {
    program.resize(program.size() - kDeleted.size());
  }
  return program;
}

bool PackagesTest::Runs(pid_t pid, const std::string& path) {
  struct stat program{};
  struct stat file{};
  const std::string exe = "/proc/" + std::to_string(pid) + "/exe";
  return stat(exe.c_str(), &program) == 0 && stat(path.c_str(), &file) == 0 &&
         program.st_dev == file.st_dev && program.st_ino == file.st_ino;
}

}  // namespace gantry::node
