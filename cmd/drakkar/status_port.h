#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "client/access_reviewer.h"
#include "client/leader_election.h"
#include "net/server/status_pages.h"
#include "net/socket/socket.h"
#include "net/tls/certificate_source.h"

namespace drakkar::cmd {

// Flags for the status port and leader election, as in kube-scheduler and kube-controller-manager.
std::vector<cli::Flag> ComponentFlags(std::uint16_t port, const std::string& lease_name);

struct StatusPortOptions {
  net::Address address;                             // port 0 disables it
  std::shared_ptr<net::CertificateSource> serving;  // null: a self-signed one is generated
  std::string client_ca_pem;            // CA for client certificates; none are accepted if empty
  std::vector<std::string> open_paths;  // /metrics and /configz, if everyone may read them
  // Set if the user did not choose this port. A port in use then only disables the status port, and
  // the warning names this flag to choose another.
  std::string flag_if_taken = {};
  // The address under which the API server reaches the port; empty: `address`.
  std::string advertised_host = {};
};
Result<StatusPortOptions> ReadStatusPort(const cli::Arguments& arguments);
// Overrides `config` with the flags that were given.
Result<void> ReadLeaderElection(const cli::Arguments& arguments,
                                client::LeaderElectionConfig& config);
// Unique across machines.
std::string LeaderIdentity();

// Serves /healthz, /livez, /readyz, /metrics, /configz and pages of the component over HTTPS. The
// API server decides who may read all but the first three. Lives on `loop`; `client` must outlive
// it.
class StatusPort {
 public:
  // Returns null if it is disabled.
  static Result<std::unique_ptr<StatusPort>> Open(UvLoop& loop, client::Client& client,
                                                  const StatusPortOptions& options,
                                                  net::StatusPages::Options pages);

  // "https://10.0.0.7:10259"; empty if other machines cannot know it: the port listens on all
  // addresses and none is advertised.
  const std::string& url() const { return url_; }
  // The CA of a generated certificate; empty if the certificate was given.
  const std::string& own_ca_pem() const { return own_ca_pem_; }

 private:
  StatusPort(UvLoop& loop, client::Client& client, std::vector<std::string> open_paths,
             net::HttpServerOptions options, net::StatusPages::Options pages);
  void Authorize(const net::ServerRequest& request, std::function<void(int, std::string)> done);

  client::AccessReviewer reviewer_;
  const std::vector<std::string> open_paths_;
  std::string url_;
  std::string own_ca_pem_;
  net::StatusPages pages_;
  net::HttpServer server_;
};

}  // namespace drakkar::cmd
