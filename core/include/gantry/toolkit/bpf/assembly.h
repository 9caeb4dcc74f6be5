// SPDX-License-Identifier: Apache-2.0
//
// Small BPF programs, put down instruction by instruction and handed to the kernel with bpf(2)
// alone. Thread: any.
// Source: Linux 6.18, Documentation/bpf/standardization/instruction-set.rst.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::bpf {

/// Instructions, one after the other. Registers are BPF_REG_0 to BPF_REG_10.
class Assembly {
 public:
  void Move(uint8_t to, uint8_t from) { Put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }

  void Set(uint8_t to, int32_t value) { Put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }

  void Add(uint8_t to, int32_t value) { Put(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }

  /// Of 32 bits; the upper ones are 0 then.
  void And(uint8_t to, int32_t value) { Put(BPF_ALU | BPF_AND | BPF_K, to, 0, 0, value); }

  void ShiftRight(uint8_t to, int32_t bits) { Put(BPF_ALU | BPF_RSH | BPF_K, to, 0, 0, bits); }

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

  void Return(int32_t value) {
    Set(BPF_REG_0, value);
    Exit();
  }

  /// A jump to where `Land` says; over what is between.
  using Jump = size_t;

  /// 32 bits are compared.
  Jump JumpUnless(uint8_t number, int32_t value) {
    return PutJump(BPF_JMP32 | BPF_JNE | BPF_K, number, value);
  }

  Jump JumpIfZero(uint8_t number) { return PutJump(BPF_JMP | BPF_JEQ | BPF_K, number, 0); }

  /// One of these bits is set.
  Jump JumpIfAny(uint8_t number, int32_t bits) {
    return PutJump(BPF_JMP32 | BPF_JSET | BPF_K, number, bits);
  }

  Jump Always() { return PutJump(BPF_JMP | BPF_JA, 0, 0); }

  void Land(Jump from) { code_[from].off = static_cast<int16_t>(code_.size() - from - 1); }

  void Land(const std::vector<Jump>& all) {
    for (const Jump one : all) {
      Land(one);
    }
  }

  const std::vector<bpf_insn>& code() const { return code_; }

 private:
  void Put(int operation, uint8_t to, uint8_t from, int16_t offset, int32_t value);

  Jump PutJump(int operation, uint8_t number, int32_t value) {
    Put(operation, number, 0, 0, value);
    return code_.size() - 1;
  }

  std::vector<bpf_insn> code_;
};

/// bpf(2), with what of it `attributes` holds. -1: errno says why.
int Call(bpf_cmd command, bpf_attr& attributes);

/// As attributes have pointers.
uint64_t PointerIn(const void* pointer);

/// The last `Call` has failed at `what`, and needs these capabilities and that kernel ("Linux 5.9
/// or later"). kUnimplemented where the kernel has no such thing.
std::unexpected<Error> FailCall(std::string_view what, std::string_view capabilities,
                                std::string_view kernel);

/// Hands it to the kernel. -1: errno says why.
UniqueFd Load(const Assembly& program, bpf_prog_type type, bpf_attach_type attached_as);

}  // namespace gantry::bpf
