#include "node/admission/pod_fit.h"

#include <algorithm>

#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "node/resources/pod_amounts.h"

namespace drakkar::node {
namespace {

using api::Value;

enum class Space { kNone, kIpc, kNetwork };

// As Kubernetes lists them, with a kernel of 5.16 or newer.
constexpr std::string_view kSafe[] = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
};

// "net/ipv4/tcp_rmem" is another way to write "net.ipv4.tcp_rmem", unless a dot comes first.
std::string Normal(std::string_view name) {
  std::string normal(name);
  const std::size_t first = normal.find_first_of("./");
  if (first == std::string::npos || normal[first] == '.') return normal;
  for (char& c : normal) c = c == '/' ? '.' : c == '.' ? '/' : c;
  return normal;
}

Space SpaceOf(std::string_view name) {
  for (const std::string_view prefix : {"kernel.shm", "kernel.msg", "fs.mqueue."}) {
    if (name.starts_with(prefix)) return Space::kIpc;
  }
  if (name == "kernel.sem") return Space::kIpc;
  return name.starts_with("net.") ? Space::kNetwork : Space::kNone;
}

bool Covers(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

}  // namespace

Result<AllowedSysctls> AllowedSysctls::Make(const std::vector<std::string>& unsafe) {
  AllowedSysctls allowed;
  for (const std::string& each : unsafe) {
    const std::string normal = Normal(each);
    if (SpaceOf(normal) == Space::kNone) {
      return InvalidArgument(
          StrCat("the sysctls ", Quote(each), " are not known to be namespaced"));
    }
    allowed.unsafe_.push_back(normal);
  }
  return allowed;
}

std::optional<PodVerdict> AllowedSysctls::Check(Value pod) const {
  const Value spec = pod["spec"];
  for (Value sysctl : spec["securityContext"]["sysctls"].elements()) {
    const std::string name = Normal(sysctl["name"].str());
    const auto forbid = [&](std::string_view why) {
      return PodVerdict{.reason = "SysctlForbidden",
                        .message = StrCat("forbidden sysctl: ", Quote(name), " ", why)};
    };
    const bool allowed =
        std::ranges::find(kSafe, name) != std::end(kSafe) ||
        std::ranges::any_of(unsafe_, [&](const auto& pattern) { return Covers(pattern, name); });
    if (!allowed) return forbid("not allowlisted");
    const Space space = SpaceOf(name);
    if (space == Space::kIpc && spec["hostIPC"].boolean()) {
      return forbid("not allowed with host ipc enabled");
    }
    if (space == Space::kNetwork && spec["hostNetwork"].boolean()) {
      return forbid("not allowed with host net enabled");
    }
  }
  return std::nullopt;
}

std::optional<PodVerdict> CheckOperatingSystem(Value pod) {
  const Value spec = pod["spec"];
  const std::string_view selected = spec["nodeSelector"].Entry("kubernetes.io/os").str();
  if (!selected.empty() && selected != "linux") {
    return PodVerdict{
        .reason = "PodOSSelectorNodeLabelDoesNotMatch",
        .message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"};
  }
  const std::string_view name = spec["os"]["name"].str();
  if (name.empty() || name == "linux") return std::nullopt;
  return PodVerdict{.reason = "PodOSNotSupported",
                    .message = "Failed to admit pod as the OS field doesn't match node OS"};
}

std::optional<PodVerdict> CheckRoom(Value pod, const NodeAmounts& allocatable,
                                    const NodeAmounts& used) {
  struct Row {
    std::string name;
    std::int64_t wanted, used, capacity;
    bool is_known = true;
  };
  std::vector<Row> rows = {
      {"pods", 1, used.pods, allocatable.pods, allocatable.pods > 0},
      {"cpu", RequestOf(pod, "cpu"), used.cpu_milli, allocatable.cpu_milli,
       allocatable.cpu_milli > 0},
      {"memory", RequestOf(pod, "memory"), used.memory_bytes, allocatable.memory_bytes,
       allocatable.memory_bytes > 0},
      {"ephemeral-storage", RequestOf(pod, "ephemeral-storage"), used.ephemeral_storage_bytes,
       allocatable.ephemeral_storage_bytes, allocatable.ephemeral_storage_bytes > 0},
  };
  const auto of_size = [](const std::map<std::string, std::int64_t>& pages,
                          const std::string& size) {
    const auto found = pages.find(size);
    return found == pages.end() ? 0 : found->second;
  };
  for (const std::string& size : PageSizesOf(pod)) {
    std::string name = StrCat(kHugePages, size);
    const std::int64_t wanted = RequestOf(pod, name);
    rows.push_back({std::move(name), wanted, of_size(used.huge_pages, size),
                    of_size(allocatable.huge_pages, size)});
  }
  for (const Row& row : rows) {
    if (!row.is_known || row.wanted <= 0) continue;
    if (api::SaturatedAdd(row.wanted, row.used) <= row.capacity) continue;
    return PodVerdict{.reason = StrCat("OutOf", row.name),
                      .message = StrCat("Node didn't have enough resource: ", row.name,
                                        ", requested: ", row.wanted, ", used: ", row.used,
                                        ", capacity: ", row.capacity)};
  }
  return std::nullopt;
}

}  // namespace drakkar::node
