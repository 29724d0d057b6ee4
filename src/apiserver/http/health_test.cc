#include "apiserver/http/health.h"

#include <gtest/gtest.h>

namespace drakkar::apiserver {
namespace {

std::vector<HealthCheck> Checks(bool synced) {
  return {{"ping", [] { return Ok(); }},
          {"informer-sync",
           [synced]() -> Result<void> {
             if (!synced) return Unavailable("not yet");
             return Ok();
           },
           true}};
}

TEST(Health, SaysOkAndListsTheChecksIfVerbose) {
  EXPECT_EQ(AnswerHealth("/readyz", false, {}, Checks(true)).body, "ok");
  EXPECT_EQ(AnswerHealth("/readyz", true, {}, Checks(true)).body,
            "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n");
}

TEST(Health, NamesWhatFailedAndWithholdsTheReason) {
  const HealthAnswer answer = AnswerHealth("/readyz", false, {}, Checks(false));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body,
            "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n");
  EXPECT_EQ(AnswerHealth("/livez", false, {}, Checks(false)).status, 200)
      << "what a restart would not cure is not part of livez";
}

TEST(Health, AnswersForOneCheckAndExcludesOthers) {
  EXPECT_EQ(AnswerHealth("/livez/ping", false, {}, Checks(false)).body, "ok");
  EXPECT_EQ(AnswerHealth("/readyz/informer-sync", false, {}, Checks(false)).status, 500);
  EXPECT_EQ(AnswerHealth("/livez/nothing", false, {}, Checks(true)).status, 404);
  EXPECT_EQ(AnswerHealth("/readyz", true, {"informer-sync"}, Checks(false)).body,
            "[+]ping ok\n[+]informer-sync excluded: ok\nreadyz check passed\n");
}

}  // namespace
}  // namespace drakkar::apiserver
