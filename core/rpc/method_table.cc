// SPDX-License-Identifier: Apache-2.0
//
// Methods by service and name. An unknown one is UNIMPLEMENTED with the words of containerd's own
// server, by which its clients choose an older version of the API.
#include "core/rpc/method_table.h"

#include <utility>

#include <gantry/format.h>

namespace gantry::rpc {

void Abandonment::Notify(std::move_only_function<void()> then) {
  if (!happened_) {
    then_ = std::move(then);
  } else if (then) {
    then();
  }
}

void Abandonment::Park(std::move_only_function<void()> then) {
  parked_ = true;
  Notify(std::move(then));
}

void Abandonment::Happen() {
  if (std::exchange(happened_, true) || !then_) {
    return;
  }
  std::exchange(then_, nullptr)();
}

Status MethodTable::Add(std::string service, std::string method, Handler handler) {
  if (service.empty() || method.empty() || !handler) {
    return Fail(Code::kInvalidArgument, "add method '{}/{}': name or handler is missing", service,
                method);
  }
  Methods& methods = services_[service];
  if (methods.contains(method)) {
    return Fail(Code::kAlreadyExists, "add method '{}/{}': already exists", service, method);
  }
  methods.emplace(std::move(method), std::move(handler));
  return {};
}

Result<const Handler*> MethodTable::Find(std::string_view service, std::string_view method) const {
  const auto methods = services_.find(service);
  if (methods == services_.end()) {
    return Fail(Code::kUnimplemented, "service {}", service);
  }
  const auto handler = methods->second.find(method);
  if (handler == methods->second.end()) {
    return Fail(Code::kUnimplemented, "method {}", method);
  }
  return &handler->second;
}

std::pair<std::string, std::string> MethodTable::NameOf(const Handler* handler) const {
  for (const auto& [service, methods] : services_) {
    for (const auto& [method, one] : methods) {
      if (&one == handler) {
        return {service, method};
      }
    }
  }
  return {};
}

std::vector<std::string> MethodTable::Names() const {
  std::vector<std::string> names;
  for (const auto& [service, methods] : services_) {
    for (const auto& [method, handler] : methods) {
      names.push_back(Format("{}/{}", service, method));
    }
  }
  return names;
}

}  // namespace gantry::rpc
