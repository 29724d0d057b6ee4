#include "node/dra/dra_stages.h"

namespace drakkar::node {

std::string_view Name(ClaimPhase phase) {
  switch (phase) {
    case ClaimPhase::kAttached:
      return "Attached";
    case ClaimPhase::kPrepared:
      return "Prepared";
    case ClaimPhase::kUnpreparing:
      return "Unpreparing";
    case ClaimPhase::kReleased:
      return "Released";
  }
  return "?";
}

std::string_view Name(ClaimEvent event) {
  switch (event) {
    case ClaimEvent::kPrepared:
      return "Prepared";
    case ClaimEvent::kUnprepareBegun:
      return "UnprepareBegun";
    case ClaimEvent::kUnprepared:
      return "Unprepared";
  }
  return "?";
}

std::string_view Name(PrepareStage stage) {
  switch (stage) {
    case PrepareStage::kListing:
      return "Listing";
    case PrepareStage::kFetchingClaims:
      return "FetchingClaims";
    case PrepareStage::kWritingIntent:
      return "WritingIntent";
    case PrepareStage::kCallingDrivers:
      return "CallingDrivers";
    case PrepareStage::kSucceeded:
      return "Succeeded";
    case PrepareStage::kFailed:
      return "Failed";
  }
  return "?";
}

std::string_view Name(PrepareEvent event) {
  switch (event) {
    case PrepareEvent::kNoClaims:
      return "NoClaims";
    case PrepareEvent::kClaimsListed:
      return "ClaimsListed";
    case PrepareEvent::kClaimsAttached:
      return "ClaimsAttached";
    case PrepareEvent::kIntentWritten:
      return "IntentWritten";
    case PrepareEvent::kDriverAnswered:
      return "DriverAnswered";
    case PrepareEvent::kAllAnswered:
      return "AllAnswered";
    case PrepareEvent::kError:
      return "Error";
  }
  return "?";
}

std::string_view Name(UnprepareStage stage) {
  switch (stage) {
    case UnprepareStage::kDetaching:
      return "Detaching";
    case UnprepareStage::kCallingDrivers:
      return "CallingDrivers";
    case UnprepareStage::kSucceeded:
      return "Succeeded";
    case UnprepareStage::kFailed:
      return "Failed";
  }
  return "?";
}

std::string_view Name(UnprepareEvent event) {
  switch (event) {
    case UnprepareEvent::kDetached:
      return "Detached";
    case UnprepareEvent::kDriverAnswered:
      return "DriverAnswered";
    case UnprepareEvent::kDriverGivenUp:
      return "DriverGivenUp";
    case UnprepareEvent::kAllAnswered:
      return "AllAnswered";
    case UnprepareEvent::kError:
      return "Error";
  }
  return "?";
}

}  // namespace drakkar::node
