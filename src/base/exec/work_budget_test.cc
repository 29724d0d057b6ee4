#include "base/exec/work_budget.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(WorkBudget, NothingIsExceededWithoutABudget) {
  WorkBudget::Charge(std::size_t{1} << 40);
  EXPECT_FALSE(WorkBudget::IsExceeded());
}

TEST(WorkBudget, IsExceededOnlyBeyondItsSteps) {
  const WorkBudget budget(10);
  WorkBudget::Charge(10);
  EXPECT_FALSE(WorkBudget::IsExceeded());
  WorkBudget::Charge(1);
  EXPECT_TRUE(WorkBudget::IsExceeded());
  EXPECT_EQ(budget.used(), 11);
}

TEST(WorkBudget, AnInnerBudgetCountsOnItsOwn) {
  const WorkBudget outer(10);
  WorkBudget::Charge(11);
  {
    const WorkBudget inner(5);
    EXPECT_FALSE(WorkBudget::IsExceeded());
    WorkBudget::Charge(3);
    EXPECT_EQ(inner.used(), 3);
  }
  EXPECT_TRUE(WorkBudget::IsExceeded());
  EXPECT_EQ(outer.used(), 11);
}

}  // namespace
}  // namespace drakkar
