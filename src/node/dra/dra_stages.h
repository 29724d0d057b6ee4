#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/state/state_machine.h"

// The state machines of claim preparation as data: a claim on this node, and the two operations of
// DraManager.
namespace drakkar::node {

// A claim that pods of this node hold.
enum class ClaimPhase : std::uint8_t {
  kAttached,     // the intent to prepare it is recorded; drivers may or may not have been called
  kPrepared,     // by all its drivers, since this process started
  kUnpreparing,  // no pod may attach until all drivers have unprepared it
  kReleased,
};
enum class ClaimEvent : std::uint8_t { kPrepared, kUnprepareBegun, kUnprepared };

std::string_view Name(ClaimPhase phase);
std::string_view Name(ClaimEvent event);

inline constexpr std::array kClaimPhases = {ClaimPhase::kAttached, ClaimPhase::kPrepared,
                                            ClaimPhase::kUnpreparing, ClaimPhase::kReleased};
inline constexpr TransitionTable<ClaimPhase, ClaimEvent, 5> kClaimTable = {{
    {ClaimPhase::kAttached, ClaimEvent::kPrepared, ClaimPhase::kPrepared},
    {ClaimPhase::kAttached, ClaimEvent::kUnprepareBegun, ClaimPhase::kUnpreparing},
    {ClaimPhase::kPrepared, ClaimEvent::kUnprepareBegun, ClaimPhase::kUnpreparing},
    {ClaimPhase::kUnpreparing, ClaimEvent::kUnprepareBegun, ClaimPhase::kUnpreparing},  // retry
    {ClaimPhase::kUnpreparing, ClaimEvent::kUnprepared, ClaimPhase::kReleased},
}};
static_assert(FindFlaw(kClaimTable, kClaimPhases, {ClaimPhase::kReleased}) == TableFlaw::kNone);

// Preparing the claims of one pod.
enum class PrepareStage : std::uint8_t {
  kListing,
  kFetchingClaims,  // nothing is changed until all are fetched and checked
  kWritingIntent,
  kCallingDrivers,  // one after the other
  kSucceeded,
  kFailed,
};
enum class PrepareEvent : std::uint8_t {
  kNoClaims,
  kClaimsListed,
  kClaimsAttached,
  kIntentWritten,
  kDriverAnswered,
  kAllAnswered,
  kError,
};

std::string_view Name(PrepareStage stage);
std::string_view Name(PrepareEvent event);

inline constexpr std::array kPrepareStages = {
    PrepareStage::kListing,        PrepareStage::kFetchingClaims, PrepareStage::kWritingIntent,
    PrepareStage::kCallingDrivers, PrepareStage::kSucceeded,      PrepareStage::kFailed};
inline constexpr TransitionTable<PrepareStage, PrepareEvent, 10> kPrepareTable = {{
    {PrepareStage::kListing, PrepareEvent::kNoClaims, PrepareStage::kSucceeded},
    {PrepareStage::kListing, PrepareEvent::kClaimsListed, PrepareStage::kFetchingClaims},
    {PrepareStage::kListing, PrepareEvent::kError, PrepareStage::kFailed},
    {PrepareStage::kFetchingClaims, PrepareEvent::kClaimsAttached, PrepareStage::kWritingIntent},
    {PrepareStage::kFetchingClaims, PrepareEvent::kError, PrepareStage::kFailed},
    {PrepareStage::kWritingIntent, PrepareEvent::kIntentWritten, PrepareStage::kCallingDrivers},
    {PrepareStage::kWritingIntent, PrepareEvent::kError, PrepareStage::kFailed},
    {PrepareStage::kCallingDrivers, PrepareEvent::kDriverAnswered, PrepareStage::kCallingDrivers},
    {PrepareStage::kCallingDrivers, PrepareEvent::kAllAnswered, PrepareStage::kSucceeded},
    {PrepareStage::kCallingDrivers, PrepareEvent::kError, PrepareStage::kFailed},
}};
static_assert(FindFlaw(kPrepareTable, kPrepareStages,
                       {PrepareStage::kSucceeded, PrepareStage::kFailed}) == TableFlaw::kNone);

// Unpreparing the claims that only one pod still holds.
enum class UnprepareStage : std::uint8_t {
  kDetaching,
  kCallingDrivers,
  kSucceeded,
  kFailed,
};
enum class UnprepareEvent : std::uint8_t {
  kDetached,
  kDriverAnswered,
  kDriverGivenUp,  // declared gone and not connected
  kAllAnswered,
  kError,
};

std::string_view Name(UnprepareStage stage);
std::string_view Name(UnprepareEvent event);

inline constexpr std::array kUnprepareStages = {
    UnprepareStage::kDetaching, UnprepareStage::kCallingDrivers, UnprepareStage::kSucceeded,
    UnprepareStage::kFailed};
inline constexpr TransitionTable<UnprepareStage, UnprepareEvent, 5> kUnprepareTable = {{
    {UnprepareStage::kDetaching, UnprepareEvent::kDetached, UnprepareStage::kCallingDrivers},
    {UnprepareStage::kCallingDrivers, UnprepareEvent::kDriverAnswered,
     UnprepareStage::kCallingDrivers},
    {UnprepareStage::kCallingDrivers, UnprepareEvent::kDriverGivenUp,
     UnprepareStage::kCallingDrivers},
    {UnprepareStage::kCallingDrivers, UnprepareEvent::kAllAnswered, UnprepareStage::kSucceeded},
    {UnprepareStage::kCallingDrivers, UnprepareEvent::kError, UnprepareStage::kFailed},
}};
static_assert(FindFlaw(kUnprepareTable, kUnprepareStages,
                       {UnprepareStage::kSucceeded, UnprepareStage::kFailed}) == TableFlaw::kNone);

}  // namespace drakkar::node
