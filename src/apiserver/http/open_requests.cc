#include "apiserver/http/open_requests.h"

#include <utility>
#include <vector>

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kMaxIdleCounts = 200;

}  // namespace

struct OpenRequests::Place {
  explicit Place(std::vector<Count> all) : counts(std::move(all)) {
    for (const Count& each : counts) ++*each;
  }
  ~Place() {
    for (const Count& each : counts) --*each;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::vector<Count> counts;
};

OpenRequests::Count OpenRequests::CountOf(std::map<std::string, Count>& counts,
                                          const std::string& key) {
  if (counts.size() >= kMaxIdleCounts && !counts.contains(key)) {
    std::erase_if(counts, [](const auto& each) { return *each.second == 0; });
  }
  Count& count = counts[key];
  if (count == nullptr) count = std::make_shared<std::size_t>(0);
  return count;
}

std::shared_ptr<const void> OpenRequests::Enter(const std::string& target,
                                                const std::string& user) {
  const Count of_target = CountOf(by_target_, target);
  const Count of_user = CountOf(by_user_, user);
  if (*in_all_ >= limits_.in_all || *of_target >= limits_.per_target ||
      *of_user >= limits_.per_user) {
    return nullptr;
  }
  return std::make_shared<const Place>(std::vector<Count>{in_all_, of_target, of_user});
}

}  // namespace drakkar::apiserver
