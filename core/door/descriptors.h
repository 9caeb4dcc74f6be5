// SPDX-License-Identifier: Apache-2.0
//
// The .proto files of what is served, as protoc describes them: the bytes of each, by its name and
// by what it declares. gantry's messages are of protobuf's lite runtime, which has no descriptors
// itself.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::door {

/// A google.protobuf.FileDescriptorSet: the services' files and all that they import.
std::string_view ServedFiles();

/// Thread: any; it does not change.
class Descriptors {
 public:
  /// Errors: kInvalidArgument: `set` is no FileDescriptorSet.
  static Result<Descriptors> Read(std::string_view set);

  /// The FileDescriptorProto of that name, before it those that it imports, each once. Empty: there
  /// is none.
  std::vector<std::string> File(std::string_view name) const;

  /// The file that declares a service, method, message, field, enum or its value. Empty: none.
  std::string FileOf(std::string_view symbol) const;

 private:
  struct One {
    std::string bytes;
    std::vector<std::string> imports;
  };

  void Collect(std::string_view name, std::vector<std::string>& names) const;

  std::map<std::string, One, std::less<>> files_;
  std::map<std::string, std::string, std::less<>> file_of_;
};

}  // namespace gantry::door
