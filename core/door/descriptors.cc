// SPDX-License-Identifier: Apache-2.0
#include "core/door/descriptors.h"

#include <algorithm>
#include <utility>

#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::door {
namespace {

// What is looked at of descriptors. Source: protobuf 3.21, google/protobuf/descriptor.proto.

struct Named {
  std::string name;

  void Each(this auto& self, auto&& field) { field(1, self.name); }
};

struct EnumType {
  std::string name;
  std::vector<Named> values;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.values);
  }
};

struct Service {
  std::string name;
  std::vector<Named> methods;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.methods);
  }
};

/// A message; those in it are read one by one, since a structure cannot have itself as a field.
struct MessageType {
  std::string name;
  std::vector<Named> fields;
  std::vector<std::string> nested;
  std::vector<EnumType> enums;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.fields);
    field(3, self.nested);
    field(4, self.enums);
  }
};

struct FileProto {
  std::string name;
  std::string package;
  std::vector<std::string> imports;
  std::vector<std::string> messages;
  std::vector<EnumType> enums;
  std::vector<Service> services;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.package);
    field(3, self.imports);
    field(4, self.messages);
    field(5, self.enums);
    field(6, self.services);
  }
};

struct FileSet {
  std::vector<std::string> files;

  void Each(this auto& self, auto&& field) { field(1, self.files); }
};

std::string Within(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "." + name;
}

void Name(const std::string& scope, const EnumType& type, std::vector<std::string>& names) {
  names.push_back(Within(scope, type.name));
  for (const Named& value : type.values) {
    // As in C++, they are beside their type.
    names.push_back(Within(scope, value.name));
  }
}

Status NameMessage(const std::string& scope, const std::string& bytes,
                   std::vector<std::string>& names) {
  GANTRY_TRY(const MessageType type, DecodeProto<MessageType>(bytes));
  const std::string name = Within(scope, type.name);
  names.push_back(name);
  for (const Named& field : type.fields) {
    names.push_back(Within(name, field.name));
  }
  for (const EnumType& one : type.enums) {
    Name(name, one, names);
  }
  for (const std::string& nested : type.nested) {
    GANTRY_CHECK_OK(NameMessage(name, nested, names));
  }
  return {};
}

Result<std::vector<std::string>> NamesIn(const FileProto& file) {
  std::vector<std::string> names;
  for (const std::string& message : file.messages) {
    GANTRY_CHECK_OK(NameMessage(file.package, message, names));
  }
  for (const EnumType& type : file.enums) {
    Name(file.package, type, names);
  }
  for (const Service& service : file.services) {
    const std::string name = Within(file.package, service.name);
    names.push_back(name);
    for (const Named& method : service.methods) {
      names.push_back(Within(name, method.name));
    }
  }
  return names;
}

}  // namespace

Result<Descriptors> Descriptors::Read(std::string_view set) {
  GANTRY_TRY(FileSet all, DecodeProto<FileSet>(set));
  Descriptors descriptors;
  for (std::string& bytes : all.files) {
    GANTRY_TRY(FileProto file, DecodeProto<FileProto>(bytes));
    GANTRY_TRY(std::vector<std::string> names, NamesIn(file));
    for (std::string& name : names) {
      descriptors.file_of_[std::move(name)] = file.name;
    }
    descriptors.files_[file.name] = {std::move(bytes), std::move(file.imports)};
  }
  return descriptors;
}

void Descriptors::Collect(std::string_view name, std::vector<std::string>& names) const {
  const auto found = files_.find(name);
  if (found == files_.end() || std::ranges::contains(names, name)) {
    return;
  }
  for (const std::string& import : found->second.imports) {
    Collect(import, names);
  }
  names.emplace_back(name);
}

std::vector<std::string> Descriptors::File(std::string_view name) const {
  std::vector<std::string> names;
  Collect(name, names);
  std::vector<std::string> files;
  files.reserve(names.size());
  for (const std::string& one : names) {
    files.push_back(files_.find(one)->second.bytes);
  }
  return files;
}

std::string Descriptors::FileOf(std::string_view symbol) const {
  const auto found = file_of_.find(symbol);
  return found == file_of_.end() ? std::string() : found->second;
}

}  // namespace gantry::door
