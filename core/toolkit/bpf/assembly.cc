// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/toolkit/bpf/assembly.h>

namespace gantry::bpf {

void Assembly::Put(int operation, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
  bpf_insn one{};
  one.code = static_cast<uint8_t>(operation);
  one.dst_reg = to & 0xf;
  one.src_reg = from & 0xf;
  one.off = offset;
  one.imm = value;
  code_.push_back(one);
}

int Call(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

uint64_t PointerIn(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::unexpected<Error> FailCall(std::string_view what, std::string_view capabilities,
                                std::string_view kernel) {
  const int cause = errno;
  if (cause == EPERM) {
    return FailErrno(cause, "{}, it needs {}", what, capabilities);
  }
  if (cause != EINVAL && cause != ENOSYS) {
    return FailErrno(cause, "{}, bpf(2) has failed", what);
  }
  std::unexpected<Error> failed = FailErrno(cause, "{}, it needs {}", what, kernel);
  failed.error().code = Code::kUnimplemented;
  return failed;
}

UniqueFd Load(const Assembly& program, bpf_prog_type type, bpf_attach_type attached_as) {
  bpf_attr load{};
  load.prog_type = type;
  load.expected_attach_type = attached_as;
  load.insns = PointerIn(program.code().data());
  load.insn_cnt = static_cast<uint32_t>(program.code().size());
  load.license = PointerIn("Apache-2.0");
  return UniqueFd(Call(BPF_PROG_LOAD, load));
}

}  // namespace gantry::bpf
