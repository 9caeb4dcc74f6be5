// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

#include "plugins/vmm/network/network.h"

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits kSaved = {.bytes = size_t{16} << 10, .depth = 4, .values = 200};

}  // namespace

std::string Network::Save() const {
  Json pairs = Json::array();
  for (const Pair& pair : pairs_) {
    pairs.push_back({{"interface", pair.interface},
                     {"index", pair.index},
                     {"tap", pair.tap},
                     {"tap_index", pair.tap_index}});
  }
  return Json({{"netns", netns_}, {"inode", inode_}, {"pairs", std::move(pairs)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Network> Network::Recover(std::string_view saved) {
  try {
    const Json json = ReadJson(saved, kSaved);
    Network network;
    network.netns_ = json.at("netns").get<std::string>();
    network.inode_ = json.at("inode").get<uint64_t>();
    for (const Json& one : json.at("pairs")) {
      network.pairs_.push_back({.interface = one.at("interface").get<std::string>(),
                                .index = one.at("index").get<int32_t>(),
                                .tap = one.at("tap").get<std::string>(),
                                .tap_index = one.at("tap_index").get<int32_t>()});
    }
    return network;
  } catch (const Json::exception& error) {
    return Fail(Code::kDataLoss, "read the saved network of a sandbox: {}", error.what());
  }
}

}  // namespace gantry::vmm
