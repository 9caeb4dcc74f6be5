// SPDX-License-Identifier: Apache-2.0
//
// The program that leads connections, and how it gets into the kernel: bpf(2) alone.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gantry/toolkit/forward/loopback.h>

namespace gantry::forward {
namespace {

int Bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

uint64_t PointerIn(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::unexpected<Error> FailBpf(const char* what) {
  const int cause = errno;
  const char* const needs = cause == EPERM ? "it needs CAP_BPF and CAP_NET_ADMIN"
                            : cause == EINVAL || cause == ENOSYS ? "it needs Linux 5.9 or later"
                                                                 : "bpf(2) has failed";
  return FailErrno(cause, "{}, {}", what, needs);
}

/// As a 32-bit constant of an instruction, of a field in network order.
int32_t NetworkOrder(uint32_t value) { return static_cast<int32_t>(htonl(value)); }

/// Instructions, put down one after the other. Registers and calls as in
/// Documentation/bpf/standardization/instruction-set.rst.
class Assembly {
 public:
  void Move(uint8_t to, uint8_t from) { Put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }

  void Set(uint8_t to, int32_t value) { Put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }

  void Add(uint8_t to, int32_t value) { Put(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }

  void And(uint8_t to, int32_t value) { Put(BPF_ALU | BPF_AND | BPF_K, to, 0, 0, value); }

  /// 32 bits of what `from` points to.
  void Load(uint8_t to, uint8_t from, size_t offset) {
    Put(BPF_LDX | BPF_MEM | BPF_W, to, from, static_cast<int16_t>(offset), 0);
  }

  void StoreZero(uint8_t at, int16_t offset) { Put(BPF_ST | BPF_MEM | BPF_W, at, 0, offset, 0); }

  void LoadMap(uint8_t to, int map) {
    Put(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
    Put(0, 0, 0, 0, 0);
  }

  void Call(bpf_func_id function) { Put(BPF_JMP | BPF_CALL, 0, 0, 0, function); }

  void Exit() { Put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

  /// A jump to where `Land` says; over what is between.
  using Jump = size_t;

  Jump JumpUnless(uint8_t register_number, int32_t value) {
    Put(BPF_JMP32 | BPF_JNE | BPF_K, register_number, 0, 0, value);
    return code_.size() - 1;
  }

  Jump JumpIfZero(uint8_t register_number) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, register_number, 0, 0, 0);
    return code_.size() - 1;
  }

  Jump Always() {
    Put(BPF_JMP | BPF_JA, 0, 0, 0, 0);
    return code_.size() - 1;
  }

  void Land(Jump from) { code_[from].off = static_cast<int16_t>(code_.size() - from - 1); }

  void Land(const std::vector<Jump>& all) {
    for (const Jump one : all) {
      Land(one);
    }
  }

  const std::vector<bpf_insn>& code() const { return code_; }

 private:
  void Put(int operation, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
    bpf_insn one{};
    one.code = static_cast<uint8_t>(operation);
    one.dst_reg = to & 0xf;
    one.src_reg = from & 0xf;
    one.off = offset;
    one.imm = value;
    code_.push_back(one);
  }

  std::vector<bpf_insn> code_;
};

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
std::vector<bpf_insn> LookupProgram(int map) {
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
  return to.code();
}

/// For one socket, under 0.
Result<UniqueFd> MakeMap() {
  bpf_attr create{};
  create.map_type = BPF_MAP_TYPE_SOCKMAP;
  create.key_size = sizeof(uint32_t);
  create.value_size = sizeof(uint64_t);
  create.max_entries = 1;
  UniqueFd map(Bpf(BPF_MAP_CREATE, create));
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
  update.key = PointerIn(&key);
  update.value = PointerIn(&value);
  if (Bpf(BPF_MAP_UPDATE_ELEM, update) != 0) {
    return FailBpf("put a listener into a BPF map");
  }
  return {};
}

Result<UniqueFd> LoadProgram(const UniqueFd& map) {
  const std::vector<bpf_insn> code = LookupProgram(map.get());
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
  load.expected_attach_type = BPF_SK_LOOKUP;
  load.insns = PointerIn(code.data());
  load.insn_cnt = static_cast<uint32_t>(code.size());
  load.license = PointerIn("Apache-2.0");
  UniqueFd program(Bpf(BPF_PROG_LOAD, load));
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
  UniqueFd link(Bpf(BPF_LINK_CREATE, create));
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
