// SPDX-License-Identifier: Apache-2.0
//
// Requests about containers and their processes. See messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

struct Streams {
  std::string input{};
  std::string output{};
  std::string error{};
  std::string terminal{};

  void Each(this auto& self, auto&& field) {
    field(1, self.input);
    field(2, self.output);
    field(3, self.error);
    field(4, self.terminal);
  }
};

struct CreateAnswer {
  int32_t pid = 0;
  std::vector<std::string> warnings{};

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.warnings);
  }
};

struct CreateContainer {
  static constexpr Kind kKind = Kind::kCreateContainer;
  using Answer = CreateAnswer;

  std::string container{};
  std::string bundle{};
  std::string spec_json{};
  Streams streams{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.bundle);
    field(3, self.spec_json);
    field(4, self.streams);
  }
};

struct CreateExec {
  static constexpr Kind kKind = Kind::kCreateExec;
  using Answer = CreateAnswer;

  std::string container{};
  std::string exec{};
  std::string process_json{};
  Streams streams{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.process_json);
    field(4, self.streams);
  }
};

struct Start {
  static constexpr Kind kKind = Kind::kStart;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
  }
};

struct Signal {
  static constexpr Kind kKind = Kind::kSignal;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};
  uint32_t signal = 0;
  bool all = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.signal);
    field(4, self.all);
  }
};

struct Pause {
  static constexpr Kind kKind = Kind::kPause;
  using Answer = Nothing;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

struct Resume {
  static constexpr Kind kKind = Kind::kResume;
  using Answer = Nothing;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

struct Update {
  static constexpr Kind kKind = Kind::kUpdate;
  using Answer = Nothing;

  std::string container{};
  std::string resources_json{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.resources_json);
  }
};

struct Resize {
  static constexpr Kind kKind = Kind::kResize;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};
  uint32_t width = 0;
  uint32_t height = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.width);
    field(4, self.height);
  }
};

struct Delete {
  static constexpr Kind kKind = Kind::kDelete;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
  }
};

}  // namespace gantry::vmm::protocol
