#include <cstdint>
#include <cstdlib>

#include "allocator/testing/harness.h"
#include "base/result/check.h"

namespace drakkar::allocator {
namespace {

// Each byte of the input is one decision of the generator.
class Bytes final : public Random {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint64_t Next() override {
    // Below() scales the whole 64 bits, so a byte goes to the top.
    const std::uint64_t byte = at_ < size_ ? data_[at_++] : 0;
    return (byte << 56) | (byte << 24) | byte;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace
}  // namespace drakkar::allocator

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::allocator;
  Bytes bytes(data, size);
  const RandomProblem problem = MakeRandomProblem(bytes);
  Harness harness(problem);
  for (const auto& node : problem.nodes) {
    const BruteForceAnswer expected = SolveByBruteForce(problem, node);
    const BruteForceAnswer actual = harness.Solve(problem, node.name);
    CHECK(actual.kind == expected.kind);
    CHECK(actual.solution == expected.solution);
    const Problem prepared = harness.Prepare(problem);
    const auto explanation = harness.allocator.Explain(prepared, node.name, {});
    CHECK(explanation.ok() == (expected.kind != BruteForceAnswer::Kind::kFatal));
    if (explanation.ok()) CHECK(!RenderText(*explanation).empty());
  }
  return 0;
}
