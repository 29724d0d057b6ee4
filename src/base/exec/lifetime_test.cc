#include "base/exec/lifetime.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "base/testing/seeded_loop.h"

namespace drakkar {
namespace {

TEST(Lifetime, GuardedCallbackRunsWhileTheOwnerExists) {
  Lifetime lifetime;
  int calls = 0;
  auto guarded = lifetime.Guard([&calls] { ++calls; });
  guarded();
  guarded();
  EXPECT_EQ(calls, 2);
}

TEST(Lifetime, GuardedCallbackDoesNothingAfterTheOwnerIsGone) {
  auto lifetime = std::make_unique<Lifetime>();
  int calls = 0;
  auto guarded = lifetime->Guard([&calls] { ++calls; });
  const auto copy = guarded;
  lifetime.reset();
  guarded();
  copy();
  EXPECT_EQ(calls, 0);
}

TEST(Lifetime, EndStopsCallbacksBeforeTheOwnerIsDestroyed) {
  Lifetime lifetime;
  int calls = 0;
  auto guarded = lifetime.Guard([&calls] { ++calls; });
  lifetime.End();
  lifetime.End();
  guarded();
  lifetime.Guard([&calls] { ++calls; })();
  EXPECT_EQ(calls, 0);
}

TEST(Lifetime, PassesArgumentsOnWithoutCopyingThem) {
  Lifetime lifetime;
  std::unique_ptr<int> received;
  absl::AnyInvocable<void(std::unique_ptr<int>, int&)> guarded =
      lifetime.Guard([&received](std::unique_ptr<int> value, int& counter) {
        received = std::move(value);
        ++counter;
      });
  int counter = 0;
  guarded(std::make_unique<int>(7), counter);
  ASSERT_NE(received, nullptr);
  EXPECT_EQ(*received, 7);
  EXPECT_EQ(counter, 1);
}

TEST(Lifetime, GuardsMoveOnlyAndMutableCallbacks) {
  Lifetime lifetime;
  std::string heard;
  absl::AnyInvocable<void()> guarded =
      lifetime.Guard([text = std::make_unique<std::string>("once"), &heard]() mutable {
        heard = *std::exchange(text, nullptr);
      });
  guarded();
  EXPECT_EQ(heard, "once");
}

TEST(Lifetime, CopyableCallbacksFitAStdFunction) {
  auto lifetime = std::make_unique<Lifetime>();
  int sum = 0;
  std::function<void(int)> guarded = lifetime->Guard([&sum](int value) { sum += value; });
  std::function<void(int)> inner = guarded;
  std::function<void(int)> outer = lifetime->Guard(inner);
  outer(3);
  lifetime.reset();
  outer(4);
  EXPECT_EQ(sum, 3);
}

TEST(Lifetime, AGuardedMemberCallIsSmallEnoughToBePostedWithoutAnAllocation) {
  struct Owner {
    auto Make() {
      return lifetime.Guard([this] { ++calls; });
    }
    int calls = 0;
    Lifetime lifetime;
  };
  static_assert(sizeof(std::declval<Owner>().Make()) == 2 * sizeof(void*));
  static_assert(std::is_nothrow_move_constructible_v<decltype(std::declval<Owner>().Make())>);
}

TEST(Lifetime, OwnerMayBeDestroyedByItsOwnCallback) {
  struct Owner {
    int value = 5;
    Lifetime lifetime;
  };
  auto owner = std::make_unique<Owner>();
  int seen = 0;
  bool alive_after = true;
  absl::AnyInvocable<void()> guarded = owner->lifetime.Guard([&, raw = owner.get()] {
    const Lifetime::Observer observer = raw->lifetime.Observe();
    seen = raw->value;
    owner.reset();
    alive_after = observer.alive();
  });
  guarded();
  guarded();
  EXPECT_EQ(seen, 5);
  EXPECT_FALSE(alive_after);
}

TEST(Lifetime, ObserverTellsWhetherTheOwnerExists) {
  auto lifetime = std::make_unique<Lifetime>();
  Lifetime::Observer observer = lifetime->Observe();
  Lifetime::Observer copy = observer;
  Lifetime::Observer moved = std::move(copy);
  EXPECT_TRUE(observer.alive());
  EXPECT_TRUE(moved.alive());
  Lifetime other;
  lifetime.reset();
  EXPECT_FALSE(observer.alive());
  EXPECT_FALSE(moved.alive());
  moved = other.Observe();
  EXPECT_TRUE(moved.alive());
}

TEST(Lifetime, AnswersOfAWorkerThreadAreDroppedOnTheLoop) {
  SeededLoop loop;
  auto lifetime = std::make_unique<Lifetime>();
  int calls = 0;
  std::optional<absl::AnyInvocable<void()>> answer(lifetime->Guard([&calls] { ++calls; }));
  std::thread worker([&] {
    auto carried = std::move(*answer);
    answer.reset();
    loop.Post(std::move(carried));
  });
  worker.join();
  lifetime.reset();
  loop.RunUntilIdle();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace drakkar
