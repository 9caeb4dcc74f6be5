// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include <gantry/error.h>
#include <gantry/format.h>

namespace gantry {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCanceled:
      return "CANCELED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

Error Error::Within(std::string_view what) && {
  message = Format("{}: {}", what, message);
  return std::move(*this);
}

Code CodeOfErrno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ESRCH:
    case ENXIO:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return Code::kResourceExhausted;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
      return Code::kUnavailable;
    case ECANCELED:
      return Code::kCanceled;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnimplemented;
    default:
      return Code::kInternal;
  }
}

std::string ErrnoName(int sys_errno) {
  const char* name = strerrorname_np(sys_errno);
  return name != nullptr ? std::string(name) : Format("errno {}", sys_errno);
}

Error ErrnoError(int sys_errno, std::string_view what) {
  return Error{CodeOfErrno(sys_errno), sys_errno, Format("{}: {}", what, ErrnoName(sys_errno)),
               std::string()};
}

}  // namespace gantry
