#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "client/access_reviewer.h"
#include "client/leader_election.h"
#include "net/server/status_pages.h"
#include "net/socket/socket.h"
#include "net/tls/certificates.h"

namespace drakkar::cmd {

// Flags of a component with a status port and leader election, as kube-scheduler and
// kube-controller-manager have them.
std::vector<cli::Flag> ComponentFlags(std::uint16_t port, const std::string& lease_name);

struct StatusPortOptions {
  net::Address address;                 // port 0: none
  net::CertificateAndKey serving;       // empty: made at start
  std::string client_ca_pem;            // whose client certificates count; empty: none
  std::vector<std::string> open_paths;  // of /metrics and /configz, those that everybody may see
  // Set if nobody asked for this very port: then one that is taken only costs the status pages, and
  // the text, the flag that chooses another, goes into the warning.
  std::string flag_if_taken = {};
};
Result<StatusPortOptions> ReadStatusPort(const cli::Arguments& arguments);
// Changes what `config` says where a flag was given.
Result<void> ReadLeaderElection(const cli::Arguments& arguments,
                                client::LeaderElectionConfig& config);
// Unique on this machine and others.
std::string LeaderIdentity();

// /healthz, /livez, /readyz, /metrics and /configz over HTTPS; who may see the last two is asked of
// the API server. Lives on `loop`; `client` must outlive it.
class StatusPort {
 public:
  // Null if there is to be none.
  static Result<std::unique_ptr<StatusPort>> Open(UvLoop& loop, client::Client& client,
                                                  const StatusPortOptions& options,
                                                  net::StatusPages::Options pages);

 private:
  StatusPort(UvLoop& loop, client::Client& client, std::vector<std::string> open_paths,
             net::HttpServerOptions options, net::StatusPages::Options pages);
  void Authorize(const net::ServerRequest& request, std::function<void(int, std::string)> done);

  client::AccessReviewer reviewer_;
  const std::vector<std::string> open_paths_;
  net::StatusPages pages_;
  net::HttpServer server_;
};

}  // namespace drakkar::cmd
