#pragma once

#include <future>
#include <memory>
#include <string>

#include "api/scheme/scheme.h"
#include "apiserver/http/frontend.h"
#include "apiserver/pki/pki.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/testing/fake_console.h"
#include "client/http_client.h"
#include "features/gates/feature_gates.h"
#include "net/testing/loopback.h"
#include "net/websocket/channels.h"
#include "net/websocket/handshake.h"
#include "net/websocket/session.h"
#include "storage/memory/memory_store.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cli::testing {

// A real API server over HTTPS on its own loop, and commands run as by a user.
class CommandTest : public ::testing::Test, private apiserver::SubresourceProxy {
 protected:
  CommandTest() : thread_("server") {
    thread_.RunSync([this] {
      store_ = storage::OpenMemoryStore(thread_.loop(), disk_);
      core_ = std::make_unique<apiserver::Core>(apiserver::Core::Options{
          .loop = thread_.loop(), .random = random_, .store = *store_, .gates = gates_});
      core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()); });
      apiserver::Frontend::Options options{
          .core = *core_, .authenticator = authenticator_, .metrics = metrics_};
      options.proxies["pods/log"] = this;
      options.proxies["nodes/proxy"] = this;
      options.proxies["pods/why"] = this;
      options.proxies["pods/exec"] = this;
      frontend_ = std::make_unique<apiserver::Frontend>(std::move(options));
      net::HttpServerOptions http;
      http.address.host = "127.0.0.1";
      http.tls = net::testing::TestServerTls();
      server_ = std::make_unique<net::HttpServer>(thread_.loop(), std::move(http), *frontend_);
      ASSERT_TRUE(server_->Start().ok());
    });
    const net::testing::TestCertificates& certificates = net::testing::TestCertificates::Get();
    kubeconfig_ =
        apiserver::MakeKubeconfig(StrCat("https://127.0.0.1:", server_->port()),
                                  certificates.ca.certificate_pem, certificates.client, "admin");
    AddClusterCommands(app_);
    AddOtherCommands(app_);
    Run("create -f -", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n");
  }
  ~CommandTest() override {
    thread_.RunSync([this] {
      command_.reset();
      server_.reset();
      frontend_.reset();
      core_.reset();
      store_.reset();
    });
  }

  struct Outcome {
    int code = 0;
    std::string out, err;
  };

  // Runs a command line (words separated by spaces, no quoting).
  Outcome Run(const std::string& line, std::string input = "") {
    std::vector<std::string> words;
    for (std::string_view word : Split(line, ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
    return RunWords(words, std::move(input));
  }
  Outcome RunWords(const std::vector<std::string>& words, std::string input = "") {
    FakeConsole console;
    Prepare(console);
    console.input = std::move(input);
    Outcome outcome;
    outcome.code = app_.Run(words, console);
    outcome.out = console.out;
    outcome.err = console.err;
    return outcome;
  }
  void Prepare(FakeConsole& console) {
    console.environment["KUBECONFIG"] = "/kubeconfig";
    ASSERT_TRUE(console.memory.WriteFile("/kubeconfig", kubeconfig_, 0600).ok());
    for (const auto& [path, text] : files_) {
      ASSERT_TRUE(console.memory.MakeDirectories(DirectoryName(path), 0755).ok());
      ASSERT_TRUE(console.memory.WriteFile(path, text, 0644).ok());
    }
  }

  // Merges `patch` into the status of an object, as the part of the cluster that owns it would.
  void PatchStatus(std::string_view group, std::string_view kind, const std::string& ns,
                   const std::string& name, const std::string& patch) {
    FakeConsole console;
    Prepare(console);
    const client::ClusterAccess access =
        client::LoadKubeconfig(console.memory, "/kubeconfig", "").value();
    std::unique_ptr<client::Client> client;
    std::promise<client::Reply> promise;
    LoopThread thread("status");
    thread.RunSync([&] {
      client = client::MakeHttpClient(thread.loop(), access, "test");
      client->Patch({api::FindKind(group, "v1", kind), ns, name, "status"},
                    client::PatchType::kMerge, StrCat("{\"status\":", patch, "}"), {},
                    [&](client::Reply reply) { promise.set_value(std::move(reply)); });
    });
    const client::Reply reply = promise.get_future().get();
    EXPECT_TRUE(reply.ok()) << reply.error->message;
    thread.RunSync([&] { client.reset(); });
  }

  // Runs a command on another thread. The test meanwhile triggers what the command waits for.
  std::future<Outcome> Start(const std::string& line) {
    return std::async(std::launch::async, [this, line] { return Run(line); });
  }

  // Serves pod logs and node responses as configured by the test, and records the request's query.
  void Serve(const apiserver::RequestInfo& info, Target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override {
    if (info.rest == "/drivers" && !node_drivers_.empty()) {
      return writer->Send(200, {{"Content-Type", "application/json"}}, node_drivers_);
    }
    if (info.resource == "nodes") {
      return writer->Send(node_devices_.empty() ? 404 : 200, {{"Content-Type", "application/json"}},
                          info.rest == "/devices" ? node_devices_ : "");
    }
    log_query_ = request.raw_query;
    if (info.subresource == "why") {
      return writer->Send(scheduler_status_, {{"Content-Type", "application/json"}},
                          scheduler_answer_);
    }
    if (info.subresource == "exec") return RunCommand(request, *writer);
    writer->StartStream(200, {{"Content-Type", "text/plain"}});
    writer->Write(net::MakeSegment(log_text_));
    writer->Finish();
  }

  // A command that echoes its input, writes to stderr and exits with 7.
  class RepeatingCommand final : private net::websocket::Session::Events {
   public:
    explicit RepeatingCommand(std::unique_ptr<net::RawStream> stream) : stream_(std::move(stream)) {
      stream_->Start(
          [this](std::string_view bytes) {
            session_.Receive(bytes);
            stream_->Write(session_.TakeOutput());
          },
          [] {});
    }

   private:
    void OnMessage(net::websocket::MessageType, std::string_view payload) override {
      const auto send = [this](std::string text) {
        session_.Send(net::websocket::MessageType::kBinary, text);
      };
      if (payload[0] == net::websocket::kChannelInput)
        send("\x01" + std::string(payload.substr(1)));
      if (payload[0] != net::websocket::kChannelClose) return;
      send(
          "\x02"
          "oh no\n");
      send(
          "\x03"
          R"({"status":"Failure","reason":"NonZeroExitCode",)"
          R"("details":{"causes":[{"reason":"ExitCode","message":"7"}]}})");
      session_.Close(net::websocket::kNormalClosure);
    }
    void OnClose(std::uint16_t, std::string_view) override {}

    std::unique_ptr<net::RawStream> stream_;
    net::websocket::Session session_{net::websocket::Role::kServer, RealRandom(), *this};
  };
  void RunCommand(const net::ServerRequest& request, net::ResponseWriter& writer) {
    const std::string_view spoken[] = {net::websocket::kChannelProtocolV5};
    Result<net::websocket::Accepted> accepted = net::websocket::Accept(request.headers, spoken);
    if (!accepted.ok()) return writer.Send(400, {}, accepted.error().message);
    command_ =
        std::make_unique<RepeatingCommand>(std::move(writer.Upgrade(accepted->headers).value()));
  }

  LoopThread thread_;
  SeededRandom random_{1};
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  Metrics metrics_;
  apiserver::Authenticator authenticator_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<apiserver::Core> core_;
  std::unique_ptr<apiserver::Frontend> frontend_;
  std::unique_ptr<net::HttpServer> server_;
  std::string kubeconfig_;
  std::map<std::string, std::string> files_;
  std::string log_text_ = "hello\n";
  std::string log_query_;
  std::string node_devices_;
  std::string node_drivers_;
  // The scheduler's response to pods/why. By default there is no scheduler.
  int scheduler_status_ = 404;
  std::string scheduler_answer_ =
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404})";
  std::unique_ptr<RepeatingCommand> command_;
  App app_{"drakkar", "test"};
};

inline std::string PodManifest(const std::string& name, const std::string& image = "busybox:1") {
  return StrCat("apiVersion: v1\nkind: Pod\nmetadata:\n  name: ", name,
                "\n  labels:\n    app: ", name,
                "\nspec:\n  containers:\n  - name: main\n    image: ", image, "\n");
}

}  // namespace drakkar::cli::testing
