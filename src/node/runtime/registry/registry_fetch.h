#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "net/client/http_client.h"
#include "node/runtime/registry/credentials.h"

namespace drakkar::node {

// Sends the requests of a pull: net::HttpClient, or a fake in tests.
class RegistryHttp {
 public:
  virtual ~RegistryHttp() = default;
  [[nodiscard]] virtual std::unique_ptr<net::RequestHandle> Stream(net::ClientRequest request,
                                                                   net::StreamSink& sink) = 0;
};

// A place from which an image can be fetched.
struct RegistryEndpoint {
  std::string base;          // "https://registry.example.com"; no slash at the end
  bool allows_http = false;  // tokens and redirects may use plain HTTP, too
  RegistryHttp* http = nullptr;
  bool is_own = true;  // the registry of the image's name, not a mirror
  std::vector<RegistryCredential> credentials = {};  // of a mirror
};

// The requests to one repository of one endpoint: authentication, redirects, bounds. Credentials go
// to the endpoint and to its token server, never to a redirect target. Loop-bound.
class RegistryFetcher {
 public:
  static constexpr int kMaxRedirects = 5;
  static constexpr std::size_t kMaxErrorBytes = 64 << 10;
  static constexpr std::size_t kMaxTokenBytes = 1 << 20;

  struct Response {
    int status = 0;
    net::Headers headers;
  };
  struct Get {
    std::string path;        // "/v2/..."
    std::string accept;      // may be empty
    std::uint64_t from = 0;  // first byte wanted; the response says whether the server agreed
    std::uint64_t max_bytes = 0;
    // A successful response begins; return an error to end it.
    std::function<Result<void>(const Response&)> on_response;
    std::function<Result<void>(std::string_view)> on_data;
    std::function<void(Result<void>)> done;
  };

  RegistryFetcher(EventLoop& loop, RegistryEndpoint endpoint, std::string repository,
                  std::vector<RegistryCredential> credentials);
  ~RegistryFetcher();

  // `done` runs once, unless this object is destroyed first. kNotFound: the registry does not have
  // it. kForbidden: no credential was accepted.
  void Fetch(Get get);

 private:
  class Request;
  void Send(const std::shared_ptr<Request>& request);
  void Finish(const std::shared_ptr<Request>& request, Result<void> result);
  void Authenticate(const std::shared_ptr<Request>& request, const AuthChallenge& challenge);
  void OnToken(const std::shared_ptr<Request>& request, Result<std::string> body);
  void TryNextCredential(const std::shared_ptr<Request>& request, Error error);
  void Redirect(const std::shared_ptr<Request>& request, std::string_view location);

  EventLoop& loop_;
  const RegistryEndpoint endpoint_;
  const std::string repository_;
  const std::vector<RegistryCredential> credentials_;
  std::size_t credential_ = 0;  // which one is being used; its size: none
  std::string authorization_;   // for the endpoint; empty until it asks
  std::vector<std::shared_ptr<Request>> requests_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
