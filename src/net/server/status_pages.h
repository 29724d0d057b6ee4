#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "net/server/http_server.h"

namespace drakkar::net {

// The pages that every Kubernetes component serves on its port: /healthz, /livez and /readyz (each
// with ?verbose, and /NAME for one check), /metrics and /configz, and pages of its own. `authorize`
// decides who may read all but the first three; if it is empty, everyone may. Bound to the server's
// loop.
class StatusPages final : public RequestHandler {
 public:
  struct Check {
    std::string name;
    std::function<Result<void>()> run;
    bool only_ready = false;  // affects /readyz but not the health of the process
  };
  // A page of the component: everything below `prefix` ("/why").
  struct Page {
    std::string prefix;
    std::function<void(const ServerRequest&, std::shared_ptr<ResponseWriter>)> handle;
  };
  struct Options {
    std::vector<Check> checks;
    std::function<std::string()> metrics;
    // Called before `metrics`, which is called when it is done. Empty: at once.
    std::function<void(std::function<void()> done)> before_metrics = {};
    std::function<std::string()> configz;  // JSON; no such page if empty
    std::vector<Page> pages = {};
    // Calls `done`, possibly later: status 0 accepts the request, any other is the response.
    std::function<void(const ServerRequest&,
                       std::function<void(int status, std::string text)> done)>
        authorize;
  };
  explicit StatusPages(Options options) : options_(std::move(options)) {}
  void Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) override;

 private:
  struct Answer {
    int status = 200;
    std::string text;
    const char* type = "text/plain; charset=utf-8";
  };
  Answer Find(const ServerRequest& request) const;
  bool IsGuarded(const ServerRequest& request) const;
  const Page* FindPage(const ServerRequest& request) const;
  Answer Health(std::string_view page, std::string_view only, bool verbose) const;

  const Options options_;
};

}  // namespace drakkar::net
