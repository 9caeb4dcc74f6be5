// SPDX-License-Identifier: Apache-2.0
//
// run-bundle BUNDLE: runs the container of BUNDLE/config.json, and ends as it ends. No hooks, no
// cgroups: it is run in the cgroup that the container is to have.
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/container/sealed_program.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/spec.h>

extern char** environ;

namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

gantry::Result<int> Run(const std::string& bundle) {
  const std::string file = bundle + "/config.json";
  GANTRY_TRY(std::string text, gantry::ReadFile(file, kMaxConfigBytes));
  gantry::container::MakeRequest request;
  GANTRY_TRY(request.spec, gantry::oci::ParseSpec(std::move(text), file));
  request.bundle = bundle;
  request.streams = {0, 1, 2};
  GANTRY_TRY(gantry::container::MadeProcess made, gantry::container::Make(request));
  GANTRY_CHECK_OK(made.Start());
  int status = 0;
  while (waitpid(made.pid(), &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  const gantry::Status sealed = gantry::container::RunSealed(argv, environ);
  if (argc != 2 || !sealed) {
    std::fprintf(stderr, "%s\n",
                 sealed ? "usage: run-bundle BUNDLE" : sealed.error().message.c_str());
    return 126;
  }
  const auto status = Run(argv[1]);
  if (!status) {
    std::fprintf(stderr, "run-bundle: %s\n", status.error().message.c_str());
    return 126;
  }
  return *status;
}
