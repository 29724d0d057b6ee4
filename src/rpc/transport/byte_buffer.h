#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

namespace drakkar::rpc::internal {

// Private to rpc/transport: the only header that names a gRPC type.
grpc::ByteBuffer ToByteBuffer(const std::string& bytes);
std::string ToString(const grpc::ByteBuffer& buffer);

}  // namespace drakkar::rpc::internal
