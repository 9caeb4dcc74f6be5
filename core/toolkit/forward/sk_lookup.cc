// SPDX-License-Identifier: Apache-2.0
//
// The program that leads connections, and how it gets into the kernel.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gantry/toolkit/bpf/assembly.h>
#include <gantry/toolkit/forward/loopback.h>

namespace gantry::forward {
namespace {

std::unexpected<Error> FailBpf(const char* what) {
  return bpf::FailCall(what, "CAP_BPF and CAP_NET_ADMIN", "Linux 5.9 or later");
}

/// As a 32-bit constant of an instruction, of a field in network order.
int32_t NetworkOrder(uint32_t value) { return static_cast<int32_t>(htonl(value)); }

using bpf::Assembly;

/// Goes on where the connection is TCP's to a loopback address; gives the jumps of all others.
std::vector<Assembly::Jump> LookAtConnection(Assembly& to, uint8_t context, uint8_t scratch) {
  constexpr size_t kV6 = offsetof(bpf_sk_lookup, local_ip6);
  std::vector<Assembly::Jump> others;
  to.Load(scratch, context, offsetof(bpf_sk_lookup, protocol));
  others.push_back(to.JumpUnless(scratch, IPPROTO_TCP));
  to.Load(scratch, context, offsetof(bpf_sk_lookup, family));
  const auto not_v4 = to.JumpUnless(scratch, AF_INET);
  to.Load(scratch, context, offsetof(bpf_sk_lookup, local_ip4));
  to.And(scratch, NetworkOrder(0xff000000));
  others.push_back(to.JumpUnless(scratch, NetworkOrder(0x7f000000)));
  const auto is_v4 = to.Always();
  to.Land(not_v4);
  for (size_t word = 0; word < 4; ++word) {
    to.Load(scratch, context, kV6 + word * sizeof(uint32_t));
    others.push_back(to.JumpUnless(scratch, NetworkOrder(word == 3 ? 1 : 0)));
  }
  to.Land(is_v4);
  return others;
}

/// Whatever it finds, the lookup goes on: without an assignment as if there were no program.
Assembly LookupProgram(int map) {
  constexpr uint8_t kContext = BPF_REG_6;
  constexpr uint8_t kListener = BPF_REG_7;
  constexpr int16_t kKey = -4;
  Assembly to;
  to.Move(kContext, BPF_REG_1);
  std::vector<Assembly::Jump> others = LookAtConnection(to, kContext, BPF_REG_2);
  to.StoreZero(BPF_REG_10, kKey);
  to.LoadMap(BPF_REG_1, map);
  to.Move(BPF_REG_2, BPF_REG_10);
  to.Add(BPF_REG_2, kKey);
  to.Call(BPF_FUNC_map_lookup_elem);
  others.push_back(to.JumpIfZero(BPF_REG_0));
  to.Move(kListener, BPF_REG_0);
  to.Move(BPF_REG_1, kContext);
  to.Move(BPF_REG_2, kListener);
  to.Set(BPF_REG_3, 0);
  to.Call(BPF_FUNC_sk_assign);
  to.Move(BPF_REG_1, kListener);
  to.Call(BPF_FUNC_sk_release);
  to.Land(others);
  to.Set(BPF_REG_0, SK_PASS);
  to.Exit();
  return to;
}

/// For one socket, under 0.
Result<UniqueFd> MakeMap() {
  bpf_attr create{};
  create.map_type = BPF_MAP_TYPE_SOCKMAP;
  create.key_size = sizeof(uint32_t);
  create.value_size = sizeof(uint64_t);
  create.max_entries = 1;
  UniqueFd map(bpf::Call(BPF_MAP_CREATE, create));
  if (!map) {
    return FailBpf("make a BPF map of sockets");
  }
  return map;
}

Status EnterListener(const UniqueFd& listener, const UniqueFd& map) {
  const uint32_t key = 0;
  const auto value = static_cast<uint64_t>(listener.get());
  bpf_attr update{};
  update.map_fd = static_cast<uint32_t>(map.get());
  update.key = bpf::PointerIn(&key);
  update.value = bpf::PointerIn(&value);
  if (bpf::Call(BPF_MAP_UPDATE_ELEM, update) != 0) {
    return FailBpf("put a listener into a BPF map");
  }
  return {};
}

Result<UniqueFd> LoadProgram(const UniqueFd& map) {
  UniqueFd program = bpf::Load(LookupProgram(map.get()), BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP);
  if (!program) {
    return FailBpf("load a BPF program of type sk_lookup");
  }
  return program;
}

}  // namespace

Result<UniqueFd> LeadLoopback(const net::Netns& netns, const UniqueFd& listener) {
  GANTRY_TRY(const UniqueFd map, MakeMap());
  GANTRY_CHECK_OK(EnterListener(listener, map));
  GANTRY_TRY(const UniqueFd program, LoadProgram(map));
  bpf_attr create{};
  create.link_create.prog_fd = static_cast<uint32_t>(program.get());
  create.link_create.target_fd = static_cast<uint32_t>(netns.fd().get());
  create.link_create.attach_type = BPF_SK_LOOKUP;
  UniqueFd link(bpf::Call(BPF_LINK_CREATE, create));
  if (!link) {
    return FailBpf("attach a BPF program to a network namespace");
  }
  return link;
}

Status CanLeadLoopback() {
  GANTRY_TRY(const UniqueFd map, MakeMap());
  GANTRY_TRY([[maybe_unused]] const UniqueFd program, LoadProgram(map));
  return {};
}

}  // namespace gantry::forward
