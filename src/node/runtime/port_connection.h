#pragma once

#include <cstddef>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::node {

// A connection to a port inside a pod. Bound to the runtime's loop; destroying it closes the
// connection, and no event follows.
class PortConnection {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnPortData(std::string_view bytes) = 0;
    virtual void OnPortDrained() = 0;  // pending_bytes has dropped to zero
    // The last event: the pod closed the connection, or the reason why there is none.
    virtual void OnPortEnd(Result<void> result) = 0;
  };

  virtual ~PortConnection() = default;
  // Buffers what the pod does not accept yet, including before the connection exists. Stop writing
  // while pending_bytes grows.
  virtual void Write(std::string_view bytes) = 0;
  virtual std::size_t pending_bytes() const = 0;
  // Nothing more is written; the pod may still send.
  virtual void FinishWriting() = 0;
  virtual void SetReading(bool reading) = 0;
};

}  // namespace drakkar::node
