#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rpc/testing/transport_harness.h"

namespace drakkar::rpc {

enum class TransportKind { kGrpc, kMemory };

// Runs each test over real unix sockets and in memory.
class ContractTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ContractTest()
      : harness_(GetParam() == TransportKind::kGrpc ? MakeGrpcHarness() : MakeMemoryHarness()) {}

  Transport& transport() { return harness_->transport(); }
  void Do(Task task) { harness_->Do(std::move(task)); }
  bool WaitUntil(std::function<bool()> condition) {
    return harness_->WaitUntil(std::move(condition));
  }
  std::string SocketPath(std::string_view name) const { return harness_->SocketPath(name); }
  bool real() const { return GetParam() == TransportKind::kGrpc; }

  // Starts an operation on the loop and waits for its Result.
  template <typename T>
  Result<T> Await(absl::AnyInvocable<void(absl::AnyInvocable<void(Result<T>)>)> start) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    Do([&] { start([result](Result<T> given) { result->emplace(std::move(given)); }); });
    if (!WaitUntil([&] { return result->has_value(); })) return Internal("nothing came back");
    return std::move(**result);
  }

  std::unique_ptr<TransportHarness> harness_;
};

inline constexpr TransportKind kTestedTransports[] = {TransportKind::kGrpc, TransportKind::kMemory};

inline std::string TransportKindName(const ::testing::TestParamInfo<TransportKind>& info) {
  return info.param == TransportKind::kGrpc ? "Grpc" : "Memory";
}

#define INSTANTIATE_CONTRACT_TEST(name)                                             \
  INSTANTIATE_TEST_SUITE_P(Transport, name, ::testing::ValuesIn(kTestedTransports), \
                           TransportKindName)

}  // namespace drakkar::rpc
