// SPDX-License-Identifier: Apache-2.0
//
// Messages of rtnetlink: who is root in a network namespace names its links and addresses.
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <gantry/toolkit/net/netlink.h>

#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

template <class Header>
void Look(std::string_view input, uint16_t type) {
  const auto parsed = net::Parse<Header>(input);
  if (!parsed) {
    return;
  }
  const std::string_view value = parsed->attributes.Find(type);
  Require(value.size() <= input.size(), "a value is a part of its message");
  parsed->attributes.Number(type);
  net::Attributes(value).Find(type);
}

}  // namespace

void FuzzOne(std::string_view input) {
  const uint16_t type = TakeByte(input);
  Look<ifinfomsg>(input, type);
  Look<ifaddrmsg>(input, type);
  Look<rtmsg>(input, type);
  Look<ndmsg>(input, type);
}

}  // namespace gantry::fuzz
