#pragma once

#include <string>
#include <string_view>

#include "base/result/error.h"

namespace drakkar::rpc {

// The one table between gRPC status codes and our error codes, both ways. gRPC codes are plain
// numbers here (0 is OK, 16 the largest), as on the wire.

// "DeadlineExceeded", spelled as Go's gRPC prints it; "Code(17)" for one outside the protocol.
std::string GrpcCodeName(int grpc_code);

// The failure that a peer or the transport reported: `rpc error: code = <name> desc = <message>`.
// `grpc_code` must not be 0.
Error ErrorFromGrpcStatus(int grpc_code, std::string_view message);

// The code a server answers for a failure. ErrorFromGrpcStatus(GrpcCodeFromError(code), ...) has
// `code` again.
int GrpcCodeFromError(ErrorCode code);

}  // namespace drakkar::rpc
