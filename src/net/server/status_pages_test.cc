#include "net/server/status_pages.h"

#include "net/testing/loopback.h"

namespace drakkar::net {
namespace {

TEST(StatusPages, ServeHealthReadinessMetricsAndConfiguration) {
  Result<void> synced = Unavailable("the caches have not synced yet");
  bool allowed = false;
  StatusPages pages(
      {.checks = {{"ping", [] { return Ok(); }, false}, {"sync", [&] { return synced; }, true}},
       .metrics = [] { return std::string("a_total 1\n"); },
       .configz = [] { return std::string("{}"); },
       .authorize =
           [&](const ServerRequest& request, auto done) {
             EXPECT_TRUE(request.path == "/metrics" || request.path == "/configz");
             done(allowed ? 0 : 403, "not for you");
           }});
  testing::Loopback net({}, {});
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    pages.Handle(std::move(request), std::move(writer));
  };
  const auto get = [&](const char* path) {
    const Response response = net.Get(path).value();
    return StrCat(response.status, " ", response.body);
  };
  EXPECT_EQ(get("/healthz"), "200 ok");
  EXPECT_EQ(get("/livez?verbose"), "200 [+]ping ok\nlivez check passed\n");
  EXPECT_EQ(
      get("/readyz"),
      "500 [+]ping ok\n[-]sync failed: the caches have not synced yet\nreadyz check failed\n");
  EXPECT_EQ(get("/readyz/ping"), "200 ok");
  EXPECT_EQ(get("/readyz/none"), "404 404 page not found\n");
  synced = Ok();
  EXPECT_EQ(get("/readyz"), "200 ok");
  EXPECT_EQ(get("/healthzz"), "404 404 page not found\n");
  EXPECT_EQ(get("/metrics"), "403 not for you\n");
  EXPECT_EQ(get("/configz"), "403 not for you\n");
  allowed = true;
  EXPECT_EQ(get("/metrics"), "200 a_total 1\n");
  EXPECT_EQ(get("/configz"), "200 {}");
}

TEST(StatusPages, ServePagesOfTheComponentToThoseWhoMayReadThem) {
  bool allowed = false;
  std::function<void()> finish;
  StatusPages pages(
      {.checks = {},
       .metrics = [] { return std::string("a_total 1\n"); },
       .before_metrics = [&](std::function<void()> done) { finish = std::move(done); },
       .configz = {},
       .pages = {{"/why",
                  [](const ServerRequest& request, std::shared_ptr<ResponseWriter> writer) {
                    writer->Send(200, {}, StrCat("because ", request.path));
                  }}},
       .authorize = [&](const ServerRequest&,
                        auto done) { done(allowed ? 0 : 403, "not for you"); }});
  testing::Loopback net({}, {});
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    pages.Handle(std::move(request), std::move(writer));
    if (finish) std::exchange(finish, nullptr)();
  };
  const auto get = [&](const char* path) {
    const Response response = net.Get(path).value();
    return StrCat(response.status, " ", response.body);
  };
  EXPECT_EQ(get("/why/pods/a/b"), "403 not for you\n");
  allowed = true;
  EXPECT_EQ(get("/why/pods/a/b"), "200 because /why/pods/a/b");
  EXPECT_EQ(get("/whynot"), "404 404 page not found\n");
  EXPECT_EQ(get("/metrics"), "200 a_total 1\n") << "after before_metrics is done";
}

}  // namespace
}  // namespace drakkar::net
