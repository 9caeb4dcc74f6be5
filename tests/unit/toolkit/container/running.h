// SPDX-License-Identifier: Apache-2.0
//
// A container that runs, made by crun, and processes that join it: by crun, and by the library.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/container/join.h>
#include <gantry/unique_fd.h>

#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::container {

class Running {
 public:
  /// Of `bundle`, which outlives it.
  Running(const Bundle& bundle, Config config);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();

  /// 0: it does not run, which is a failure of the test.
  pid_t init() const { return init_; }

  int pidfd() const { return pidfd_.get(); }

  /// By the library: to be completed, and given to `Join`.
  Result<JoinRequest> RequestOf(const Config& process) const;
  /// All that it writes, and how it ends; or `CODE: message`.
  std::string Join(const Config& process) const;
  /// The same by crun.
  std::string JoinByCrun(const Config& process) const;

 private:
  const Bundle& bundle_;
  Config config_;
  std::string id_;
  pid_t init_ = 0;
  UniqueFd pidfd_;
};

}  // namespace gantry::container
