#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/http/aggregation_proxy.h"
#include "apiserver/testing/https_fixture.h"
#include "base/text/text.h"
#include "net/tls/certificate_source.h"

namespace drakkar::apiserver {
namespace {

constexpr char kNodes[] = "/apis/metrics.k8s.io/v1beta1/nodes";

// An API server and the server behind an APIService, on one real loop.
class AggregationTest : public HttpsTest {
 protected:
  AggregationTest() {
    const net::testing::TestCertificates& certificates = net::testing::TestCertificates::Get();
    const net::CertificateAndKey own =
        net::IssueCertificate(certificates.ca, {"metrics", {}, {"metrics.default.svc"}, {}},
                              net::CertificateUse::kServer, net::testing::TestValidity())
            .value();
    net::TlsServerOptions tls;
    tls.certificate_pem = own.certificate_pem;
    tls.key_pem = own.key_pem;
    tls.client_ca_pem = certificates.ca.certificate_pem;
    net::HttpServerOptions options;
    options.address.host = "127.0.0.1";
    options.tls = net::TlsContext::Server(tls).value();
    backend_ = std::make_unique<net::HttpServer>(loop_, options, handler_);
    EXPECT_TRUE(backend_->Start().ok());
    const net::CertificateAndKey front =
        net::IssueCertificate(certificates.ca, {"front-proxy-client", {}, {}, {}},
                              net::CertificateUse::kClient, net::testing::TestValidity())
            .value();
    proxy_ = std::make_unique<AggregationProxy>(
        loop_, std::make_shared<net::ReplaceableCertificate>(front));
    adjust_ = [this](Frontend::Options& given) {
      given.aggregation = &board_;
      given.aggregation_proxy = proxy_.get();
      given.find_backend = [this](const AggregatedApi&) -> Result<std::string> {
        return StrCat("127.0.0.1:", backend_->port());
      };
    };
    Publish(/*is_available=*/true);
    Serve();
    handler_.function = [this](net::ServerRequest request,
                               std::shared_ptr<net::ResponseWriter> writer) {
      seen_.push_back(std::move(request));
      writer->Send(201, {{"Content-Type", "text/x"}, {"X-Own", "yes"}}, std::string("answer"));
    };
  }
  ~AggregationTest() override {
    streams_.clear();
    held_.clear();
    http_.reset();
    server_.reset();
    RunOnce();
    backend_.reset();
    frontend_.reset();
    proxy_.reset();
    RunOnce();
  }

  void Publish(bool is_available, std::string server_name = "metrics") {
    auto api = std::make_shared<AggregatedApi>();
    api->name = "v1beta1.metrics.k8s.io";
    api->group = "metrics.k8s.io";
    api->version = "v1beta1";
    api->service_namespace = "default";
    api->service_name = std::move(server_name);
    api->ca_pem = net::testing::TestCertificates::Get().ca.certificate_pem;
    api->is_available = is_available;
    AggregatedApis::Map map;
    map[{api->group, api->version}] = api;
    board_.Publish(std::make_shared<const AggregatedApis>(std::move(map)));
  }
  static std::string Message(const net::Response& response) {
    Result<api::TreePtr> tree = api::ParseJson(response.body);
    return tree.ok() ? std::string((*tree)->root()["message"].str()) : response.body;
  }
  // Requests that the server behind does not answer.
  void Hold() {
    handler_.function = [this](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
      held_.push_back(std::move(writer));
    };
  }

  net::testing::FunctionHandler handler_;
  std::unique_ptr<net::HttpServer> backend_;
  std::unique_ptr<AggregationProxy> proxy_;
  AggregationBoard board_;
  std::vector<net::ServerRequest> seen_;
  std::vector<std::shared_ptr<net::ResponseWriter>> held_;
  std::vector<std::unique_ptr<net::RequestHandle>> streams_;
};

TEST_F(AggregationTest, PassesARequestOnInTheNameOfTheCaller) {
  const net::Response answer = Do(net::Method::kPost, StrCat(kNodes, "?dryRun=All&x=%2F"), "body",
                                  {{"Content-Type", "application/x"},
                                   {"X-Remote-User", "somebody-else"},
                                   {"X-Remote-Group", "system:masters"},
                                   {"X-Remote-Extra-Scopes", "all"},
                                   {"Authorization", "Bearer secret"}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "answer");
  EXPECT_EQ(answer.headers.Get("content-type"), "text/x");
  EXPECT_EQ(answer.headers.Get("x-own"), "yes");
  ASSERT_EQ(seen_.size(), 1u);
  const net::ServerRequest& request = seen_[0];
  EXPECT_EQ(request.method, net::Method::kPost);
  EXPECT_EQ(request.raw_path, kNodes);
  EXPECT_EQ(request.raw_query, "dryRun=All&x=%2F");
  EXPECT_EQ(request.body, "body");
  EXPECT_EQ(request.headers.Get("content-type"), "application/x");
  EXPECT_EQ(request.headers.Get("authorization"), "");
  EXPECT_EQ(request.headers.Count("x-remote-user"), 1u);
  EXPECT_EQ(request.headers.Get("x-remote-user"), "jane");
  std::vector<std::string> groups;
  for (const auto& [name, value] : request.headers) {
    if (net::EqualsIgnoreCase(name, "x-remote-group")) groups.push_back(value);
    EXPECT_FALSE(net::EqualsIgnoreCase(name, "x-remote-extra-scopes"));
  }
  EXPECT_THAT(groups, testing::ElementsAre("dev", "ops", "system:authenticated"));
  EXPECT_EQ(request.headers.Get("host"), "metrics.default.svc:443");
  ASSERT_TRUE(request.connection->peer.has_value());
  EXPECT_EQ(request.connection->peer->common_name, "front-proxy-client");
}

TEST_F(AggregationTest, AnswersAreNotCached) {
  for (const std::size_t times : {1u, 2u}) {
    EXPECT_EQ(Do(net::Method::kGet, StrCat(kNodes, "/n1")).body, "answer");
    EXPECT_EQ(seen_.size(), times);
  }
}

TEST_F(AggregationTest, TheListOfResourcesComesFromTheServerBehind) {
  EXPECT_EQ(Do(net::Method::kGet, "/apis/metrics.k8s.io/v1beta1").status, 201);
  ASSERT_EQ(seen_.size(), 1u);
  // The group is ours to describe.
  const net::Response group = Do(net::Method::kGet, "/apis/metrics.k8s.io");
  EXPECT_EQ(group.status, 200);
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(AggregationTest, AServerThatIsNotAvailableIsNotAsked) {
  Publish(/*is_available=*/false);
  const net::Response answer = Do(net::Method::kGet, kNodes);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(Message(answer),
            "APIService v1beta1.metrics.k8s.io is not available: see its condition Available");
  EXPECT_TRUE(seen_.empty());
}

TEST_F(AggregationTest, TheCertificateMustBeThatOfTheService) {
  Publish(/*is_available=*/true, "impostor");
  const net::Response answer = Do(net::Method::kGet, kNodes);
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(AggregationTest, AStreamArrivesPieceByPiece) {
  Hold();
  net::testing::RecordingSink sink;
  net::ClientRequest request;
  request.url = StrCat(access_.server, kNodes, "?watch=true");
  streams_.push_back(http_->Stream(std::move(request), sink));
  RunUntil([&] { return held_.size() == 1; });
  held_[0]->StartStream(200, {{"Content-Type", "application/json"}});
  held_[0]->Write(net::MakeSegment("one\n"));
  RunUntil([&] { return sink.data == "one\n"; });
  held_[0]->Write(net::MakeSegment("two\n"));
  RunUntil([&] { return sink.data == "one\ntwo\n"; });
  EXPECT_EQ(sink.status, 200);
  // The client leaves, and the server behind notices.
  bool gone = false;
  held_[0]->OnClosed([&](bool) { gone = true; });
  streams_.clear();
  RunUntil([&] { return gone; });
}

TEST_F(AggregationTest, BytesGoBothWaysAfterAnUpgrade) {
  std::unique_ptr<net::RawStream> server_end;
  handler_.function = [&](net::ServerRequest asked, std::shared_ptr<net::ResponseWriter> writer) {
    EXPECT_EQ(asked.headers.Get("x-remote-user"), "jane");
    server_end = std::move(
        writer->Upgrade({{"Upgrade", "echo"}, {"X-Stream-Protocol-Version", "e1"}}).value());
    server_end->Start([&](std::string_view bytes) { server_end->Write(StrCat("<", bytes, ">")); },
                      [] {});
  };
  net::ClientRequest request;
  request.url = StrCat(access_.server, kNodes, "/a/exec");
  request.headers = {{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
  std::optional<Result<net::UpgradedConnection>> answer;
  auto handle = http_->Upgrade(
      request, [&](Result<net::UpgradedConnection> upgraded) { answer = std::move(upgraded); });
  RunUntil([&] { return answer.has_value(); });
  ASSERT_TRUE(answer->ok());
  ASSERT_EQ((*answer)->response.status, 101);
  EXPECT_EQ((*answer)->response.headers.Get("x-stream-protocol-version"), "e1");
  std::unique_ptr<net::RawStream> client_end = std::move((*answer)->stream);
  std::string received;
  client_end->Start([&](std::string_view bytes) { received += bytes; }, [] {});
  client_end->Write("hello");
  RunUntil([&] { return received == "<hello>"; });
  client_end.reset();
  RunOnce();
  server_end.reset();
}

TEST_F(AggregationTest, AServerThatHangsLeavesRoomForOthers) {
  Hold();
  std::vector<std::unique_ptr<net::testing::RecordingSink>> sinks;
  const auto open = [&](std::size_t count, const std::string& user) {
    for (std::size_t i = 0; i < count; ++i) {
      net::ClientRequest request;
      request.url = StrCat(access_.server, kNodes, "?watch=true");
      request.headers = {{"Impersonate-User", user}};
      sinks.push_back(std::make_unique<net::testing::RecordingSink>());
      streams_.push_back(http_->Stream(std::move(request), *sinks.back()));
    }
    const std::size_t expected = held_.size() + count;
    RunUntil([&] { return held_.size() == expected; });
  };
  const auto ask = [&](const std::string& user) {
    return Do(net::Method::kGet, kNodes, "", {{"Impersonate-User", user}}).status;
  };
  // One user leaves room for the next.
  open(AggregationProxy::kMaxOpenPerUser, "a");
  EXPECT_EQ(ask("a"), 429);
  open(AggregationProxy::kMaxOpenPerUser, "b");
  open(AggregationProxy::kMaxOpenPerApi - 2 * AggregationProxy::kMaxOpenPerUser, "c");
  const net::Response refused = Do(net::Method::kGet, kNodes);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/namespaces/default").status, 200);
  // One leaves, and there is room again.
  streams_.pop_back();
  handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(200, {}, std::string("there"));
  };
  net::Response answer;
  for (int i = 0; i < 100 && answer.status != 200; ++i) {
    answer = Do(net::Method::kGet, kNodes);
  }
  EXPECT_EQ(answer.body, "there");
}

TEST_F(AggregationTest, ARedirectIsNotPassedOn) {
  handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(302, {{"Location", "https://169.254.169.254/"}}, std::string());
  };
  const net::Response answer = Do(net::Method::kGet, kNodes);
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(Message(answer),
            "the backend attempted to redirect this request, which is not permitted");
}

TEST_F(AggregationTest, AnAnswerWithoutABodyStaysOne) {
  handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(304, {{"Etag", "a"}}, std::string());
  };
  const net::Response answer = Do(net::Method::kGet, kNodes);
  EXPECT_EQ(answer.status, 304);
  EXPECT_EQ(answer.body, "");
}

TEST_F(AggregationTest, ServersThatPointAtEachOtherEndTheirCircle) {
  const net::Response answer =
      Do(net::Method::kGet, kNodes, "", {{"X-Drakkar-Aggregator-Hops", "3"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(Message(answer),
            "ask the server of APIService v1beta1.metrics.k8s.io: it leads back to this server");
  EXPECT_TRUE(seen_.empty());
  Do(net::Method::kGet, kNodes, "", {{"X-Drakkar-Aggregator-Hops", "1"}});
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].headers.Get("X-Drakkar-Aggregator-Hops"), "2");
}

}  // namespace
}  // namespace drakkar::apiserver
