#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace drakkar::testing {

// Counts the cases of a vector test and prints the line that `./dev vectors` collects:
//   quantity: 822 passed, 0 failed, 0 listed deviations
// A case fails if gtest records a failure while its scope is open.
class VectorReport {
 public:
  explicit VectorReport(std::string area) : area_(std::move(area)) {}
  ~VectorReport() {
    std::printf("%s: %d passed, %d failed, 0 listed deviations\n", area_.c_str(), passed_, failed_);
  }
  VectorReport(const VectorReport&) = delete;
  VectorReport& operator=(const VectorReport&) = delete;

  class Case {
   public:
    explicit Case(VectorReport& report) : report_(report), before_(Failures()) {}
    ~Case() { ++(Failures() > before_ ? report_.failed_ : report_.passed_); }
    Case(const Case&) = delete;
    Case& operator=(const Case&) = delete;

   private:
    static int Failures() {
      return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    }
    VectorReport& report_;
    int before_;
  };

 private:
  std::string area_;
  int passed_ = 0;
  int failed_ = 0;
};

}  // namespace drakkar::testing
