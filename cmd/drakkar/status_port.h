#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "client/leader_election.h"
#include "net/server/status_pages.h"
#include "net/socket/socket.h"
#include "net/tls/certificates.h"

namespace drakkar::cmd {

// Flags of a component with a status port and leader election, as kube-scheduler and
// kube-controller-manager have them.
std::vector<cli::Flag> ComponentFlags(std::uint16_t port, const std::string& lease_name);

struct StatusPortOptions {
  net::Address address;                // port 0: none
  net::CertificateAndKey serving;      // empty: made at start
  std::string client_ca_pem;           // who may see /metrics and /configz; empty: everybody
};
Result<StatusPortOptions> ReadStatusPort(const cli::Arguments& arguments);
// Changes what `config` says where a flag was given.
Result<void> ReadLeaderElection(const cli::Arguments& arguments,
                                client::LeaderElectionConfig& config);
// Unique on this machine and others.
std::string LeaderIdentity();

// /healthz, /livez, /readyz, /metrics and /configz over HTTPS. Lives on `loop`.
class StatusPort {
 public:
  // Null if there is to be none.
  static Result<std::unique_ptr<StatusPort>> Open(UvLoop& loop, const StatusPortOptions& options,
                                                  net::StatusPages::Options pages);

 private:
  StatusPort(UvLoop& loop, net::HttpServerOptions options, net::StatusPages::Options pages)
      : pages_(std::move(pages)), server_(loop, std::move(options), pages_) {}
  net::StatusPages pages_;
  net::HttpServer server_;
};

}  // namespace drakkar::cmd
