#pragma once

#include <string>
#include <vector>

#include "rpc/dra/dra.h"

namespace drakkar::rpc::dra {

std::string PrepareMethod(DraVersion version);
std::string UnprepareMethod(DraVersion version);
std::string AnnounceMethod();

// The request message of NodePrepareResources and NodeUnprepareResources.
std::string EncodeClaims(const std::vector<ClaimReference>& claims);
Result<std::vector<ClaimReference>> DecodeClaims(const std::string& bytes);

// Answered with an empty message.
std::string EncodeAnnouncement(const std::vector<AnnouncedClaim>& claims);
Result<std::vector<AnnouncedClaim>> DecodeAnnouncement(const std::string& bytes);

std::string EncodePrepareResults(const PrepareResults& results, DraVersion version);
Result<PrepareResults> DecodePrepareResults(const std::string& bytes, DraVersion version);
std::string EncodeUnprepareResults(const UnprepareResults& results);
Result<UnprepareResults> DecodeUnprepareResults(const std::string& bytes);

}  // namespace drakkar::rpc::dra
