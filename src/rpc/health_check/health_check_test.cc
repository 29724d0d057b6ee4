#include "rpc/health_check/health_check.h"

#include <gtest/gtest.h>

#include "rpc/testing/contract_test.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

// The name of the service is the status to return; "none" returns an error.
class NumberedHealth final : public RpcService {
 public:
  std::vector<std::string> MethodPaths() const override { return {HealthCheckMethod()}; }
  void Handle(std::string_view, std::string request, std::unique_ptr<ServerCall> call) override {
    const auto service = DecodeHealthCheckRequest(request);
    if (!service.ok()) return call->Finish(service.error());
    if (*service == "none") return call->Finish(NotFound("no such service"));
    call->Send(*service == "bad"
                   ? std::string("\xff")
                   : EncodeHealthCheckResponse(service->empty() ? 1 : std::stoi(*service)));
    call->Finish(Ok());
  }
};

class HealthCheckTest : public ContractTest {
 protected:
  HealthCheckTest() {
    Do([this] {
      std::vector<std::unique_ptr<RpcService>> services;
      services.push_back(std::make_unique<NumberedHealth>());
      server_ = transport().CreateServer(SocketPath("h.sock"), std::move(services));
      EXPECT_TRUE(server_->Start().ok());
      channel_ = transport().OpenChannel({.socket_path = SocketPath("h.sock")});
    });
  }
  ~HealthCheckTest() override {
    Do([this] {
      channel_.reset();
      server_.reset();
    });
  }
  Result<std::string> Check(const std::string& service) {
    return Await<std::string>([&](auto done) {
      auto shared = std::make_shared<decltype(done)>(std::move(done));
      CheckHealth(*channel_, service, std::chrono::seconds(20),
                  [shared](Result<std::string> status) { (*shared)(std::move(status)); });
    });
  }
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
};

TEST_P(HealthCheckTest, NamesTheStatus) {
  EXPECT_EQ(Check("").value(), "SERVING");
  EXPECT_EQ(Check("0").value(), "UNKNOWN");
  EXPECT_EQ(Check("2").value(), "NOT_SERVING");
  EXPECT_EQ(Check("3").value(), "SERVICE_UNKNOWN");
  EXPECT_EQ(Check("17").value(), "17");
}

TEST_P(HealthCheckTest, ReportsWhatTheServerRefusesAndWhatIsMalformed) {
  EXPECT_EQ(Check("none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Check("bad").error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_CONTRACT_TEST(HealthCheckTest);

}  // namespace
}  // namespace drakkar::rpc
