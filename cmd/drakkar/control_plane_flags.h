#pragma once

#include "cmd/drakkar/control_plane.h"

// Flags of the API server, the controllers and the scheduler, and the code that reads them. `up`
// has most of them too.
namespace drakkar::cmd {

// --skip-node-operations-form. ReadSkipForm returns true for "list".
cli::Flag SkipFormFlag();
Result<bool> ReadSkipForm(const cli::Arguments& arguments);

// --event-ttl, --max-events, --max-event-bytes.
std::vector<cli::Flag> EventFlags();
Result<apiserver::EventLimits> ReadEventLimits(const cli::Arguments& arguments);

// --max-requests-inflight, --max-mutating-requests-inflight: kube-apiserver's names and defaults.
std::vector<cli::Flag> InFlightFlags();
Result<apiserver::InFlightLimits> ReadInFlightLimits(const cli::Arguments& arguments);

// --service-account-*, --api-audiences: named as in kube-apiserver.
std::vector<cli::Flag> TokenKeyFlags();
Result<void> ReadTokenKeys(const cli::Arguments& arguments, std::string& signing_key,
                           std::vector<std::string>& keys);
Result<apiserver::TokenNames> ReadTokenNames(const cli::Arguments& arguments);

// Proxies before the API server that say who their clients are.
std::vector<cli::Flag> FrontProxyFlags();
Result<apiserver::FrontProxies> ReadFrontProxies(const cli::Arguments& arguments);

// --advertise-address, --tls-san: how others reach the API server.
std::vector<cli::Flag> ReachFlags();
std::vector<std::string> ReadAlternativeNames(const cli::Arguments& arguments);

// --controllers.
cli::Flag ControllersFlag();
cli::Flag AccountsFlag();
Result<controllers::Selection> ReadControllers(const cli::Arguments& arguments);

// --cluster-signing-*: named as in kube-controller-manager.
std::vector<cli::Flag> SigningFlags();
Result<std::optional<controllers::SigningAuthority>> ReadSigning(const cli::Arguments& arguments);

// Reads the file, or returns the defaults if `path` is empty.
Result<scheduler::Configuration> ReadSchedulerConfiguration(const std::string& path,
                                                            const FeatureGates& gates);

}  // namespace drakkar::cmd
