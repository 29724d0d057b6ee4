#include "cmd/drakkar/kubelet_fields.h"

#include <limits>
#include <optional>

#include "api/codec/yaml_locate.h"
#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::cmd {
namespace {

using api::Value;

constexpr std::string_view kApiVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kKind = "KubeletConfiguration";

enum class Type {
  kBool,
  kInt32,
  kInt64,
  kUint32,
  kNumber,
  kText,
  kDuration,       // "1m30s"
  kDurationOrInt,  // the same, or nanoseconds
  kQuantity,       // "10Mi" or a number
  kTime,           // RFC 3339
  kObject,         // its fields follow as "name.field"
  kList,           // of objects, whose fields follow as "name.field"
  kTexts,
  kInts,
  kMapOfBools,
  kMapOfTexts,
  kMapOfTextLists,
  kMapOfQuantities,
};

struct Field {
  std::string_view path;
  Type type;
  bool acts = false;  // has an effect on this node
};

// As in k8s.io/kubelet/config/v1beta1, with the logging and tracing configuration in it.
constexpr Field kFields[] = {
    {"apiVersion", Type::kText, true},
    {"kind", Type::kText, true},
    {"enableServer", Type::kBool},
    {"staticPodPath", Type::kText},
    {"podLogsDir", Type::kText, true},
    {"syncFrequency", Type::kDuration},
    {"fileCheckFrequency", Type::kDuration},
    {"httpCheckFrequency", Type::kDuration},
    {"staticPodURL", Type::kText},
    {"staticPodURLHeader", Type::kMapOfTextLists},
    {"address", Type::kText},
    {"port", Type::kInt32},
    {"readOnlyPort", Type::kInt32},
    {"tlsCertFile", Type::kText},
    {"tlsPrivateKeyFile", Type::kText},
    {"tlsCipherSuites", Type::kTexts},
    {"tlsCurvePreferences", Type::kInts},
    {"tlsMinVersion", Type::kText},
    {"rotateCertificates", Type::kBool},
    {"serverTLSBootstrap", Type::kBool},
    {"authentication", Type::kObject},
    {"authentication.x509", Type::kObject},
    {"authentication.x509.clientCAFile", Type::kText},
    {"authentication.webhook", Type::kObject},
    {"authentication.webhook.enabled", Type::kBool},
    {"authentication.webhook.cacheTTL", Type::kDuration},
    {"authentication.anonymous", Type::kObject},
    {"authentication.anonymous.enabled", Type::kBool},
    {"authorization", Type::kObject},
    {"authorization.mode", Type::kText},
    {"authorization.webhook", Type::kObject},
    {"authorization.webhook.cacheAuthorizedTTL", Type::kDuration},
    {"authorization.webhook.cacheUnauthorizedTTL", Type::kDuration},
    {"registryPullQPS", Type::kInt32, true},
    {"registryBurst", Type::kInt32, true},
    {"imagePullCredentialsVerificationPolicy", Type::kText},
    {"preloadedImagesVerificationAllowlist", Type::kTexts},
    {"eventRecordQPS", Type::kInt32},
    {"eventBurst", Type::kInt32},
    {"enableDebuggingHandlers", Type::kBool},
    {"enableContentionProfiling", Type::kBool},
    {"healthzPort", Type::kInt32},
    {"healthzBindAddress", Type::kText},
    {"oomScoreAdj", Type::kInt32},
    {"clusterDomain", Type::kText, true},
    {"clusterDNS", Type::kTexts, true},
    {"streamingConnectionIdleTimeout", Type::kDuration},
    {"nodeStatusUpdateFrequency", Type::kDuration, true},
    {"nodeStatusReportFrequency", Type::kDuration, true},
    {"nodeLeaseDurationSeconds", Type::kInt32, true},
    {"imageMinimumGCAge", Type::kDuration, true},
    {"imageMaximumGCAge", Type::kDuration, true},
    {"imageGCHighThresholdPercent", Type::kInt32, true},
    {"imageGCLowThresholdPercent", Type::kInt32, true},
    {"volumeStatsAggPeriod", Type::kDuration},
    {"kubeletCgroups", Type::kText},
    {"systemCgroups", Type::kText},
    {"cgroupRoot", Type::kText, true},
    {"cgroupsPerQOS", Type::kBool, true},
    {"cgroupDriver", Type::kText},
    {"cpuManagerPolicy", Type::kText, true},
    {"singleProcessOOMKill", Type::kBool, true},
    {"cpuManagerPolicyOptions", Type::kMapOfTexts, true},
    {"cpuManagerReconcilePeriod", Type::kDuration, true},
    {"draManagerReconcilePeriod", Type::kDuration},
    {"memoryManagerPolicy", Type::kText, true},
    {"topologyManagerPolicy", Type::kText, true},
    {"topologyManagerScope", Type::kText, true},
    {"topologyManagerPolicyOptions", Type::kMapOfTexts},
    {"qosReserved", Type::kMapOfTexts},
    {"runtimeRequestTimeout", Type::kDuration},
    {"hairpinMode", Type::kText},
    {"maxPods", Type::kInt32, true},
    {"podCIDR", Type::kText},
    {"podPidsLimit", Type::kInt64, true},
    {"resolvConf", Type::kText, true},
    {"runOnce", Type::kBool},
    {"cpuCFSQuota", Type::kBool, true},
    {"cpuCFSQuotaPeriod", Type::kDuration, true},
    {"nodeStatusMaxImages", Type::kInt32, true},
    {"maxOpenFiles", Type::kInt64},
    {"contentType", Type::kText},
    {"kubeAPIQPS", Type::kInt32},
    {"kubeAPIBurst", Type::kInt32},
    {"serializeImagePulls", Type::kBool, true},
    {"maxParallelImagePulls", Type::kInt32, true},
    {"evictionHard", Type::kMapOfTexts, true},
    {"evictionSoft", Type::kMapOfTexts, true},
    {"evictionSoftGracePeriod", Type::kMapOfTexts, true},
    {"evictionPressureTransitionPeriod", Type::kDuration, true},
    {"evictionMaxPodGracePeriod", Type::kInt32, true},
    {"evictionMinimumReclaim", Type::kMapOfTexts, true},
    {"mergeDefaultEvictionSettings", Type::kBool, true},
    {"podsPerCore", Type::kInt32, true},
    {"enableControllerAttachDetach", Type::kBool},
    {"protectKernelDefaults", Type::kBool},
    {"makeIPTablesUtilChains", Type::kBool},
    {"iptablesMasqueradeBit", Type::kInt32},
    {"iptablesDropBit", Type::kInt32},
    {"featureGates", Type::kMapOfBools, true},
    {"failSwapOn", Type::kBool, true},
    {"memorySwap", Type::kObject, true},
    {"memorySwap.swapBehavior", Type::kText, true},
    {"containerLogMaxSize", Type::kText, true},
    {"containerLogMaxFiles", Type::kInt32, true},
    {"containerLogMaxWorkers", Type::kInt32},
    {"containerLogMonitorInterval", Type::kDuration, true},
    {"configMapAndSecretChangeDetectionStrategy", Type::kText},
    {"systemReserved", Type::kMapOfTexts, true},
    {"kubeReserved", Type::kMapOfTexts, true},
    {"reservedSystemCPUs", Type::kText, true},
    {"showHiddenMetricsForVersion", Type::kText},
    {"systemReservedCgroup", Type::kText, true},
    {"kubeReservedCgroup", Type::kText, true},
    {"enforceNodeAllocatable", Type::kTexts, true},
    {"allowedUnsafeSysctls", Type::kTexts, true},
    {"volumePluginDir", Type::kText},
    {"providerID", Type::kText, true},
    {"kernelMemcgNotification", Type::kBool},
    {"logging", Type::kObject},
    {"logging.format", Type::kText},
    {"logging.flushFrequency", Type::kDurationOrInt},
    {"logging.verbosity", Type::kUint32},
    {"logging.vmodule", Type::kList},
    {"logging.vmodule.filePattern", Type::kText},
    {"logging.vmodule.verbosity", Type::kUint32},
    {"logging.options", Type::kObject},
    {"logging.options.text", Type::kObject},
    {"logging.options.text.splitStream", Type::kBool},
    {"logging.options.text.infoBufferSize", Type::kQuantity},
    {"logging.options.json", Type::kObject},
    {"logging.options.json.splitStream", Type::kBool},
    {"logging.options.json.infoBufferSize", Type::kQuantity},
    {"enableSystemLogHandler", Type::kBool},
    {"enableSystemLogQuery", Type::kBool},
    {"shutdownGracePeriod", Type::kDuration, true},
    {"shutdownGracePeriodCriticalPods", Type::kDuration, true},
    {"shutdownGracePeriodByPodPriority", Type::kList, true},
    {"shutdownGracePeriodByPodPriority.priority", Type::kInt32, true},
    {"shutdownGracePeriodByPodPriority.shutdownGracePeriodSeconds", Type::kInt64, true},
    {"crashLoopBackOff", Type::kObject, true},
    {"crashLoopBackOff.maxContainerRestartPeriod", Type::kDuration, true},
    {"reservedMemory", Type::kList},
    {"reservedMemory.numaNode", Type::kInt32},
    {"reservedMemory.limits", Type::kMapOfQuantities},
    {"enableProfilingHandler", Type::kBool},
    {"enableDebugFlagsHandler", Type::kBool},
    {"seccompDefault", Type::kBool, true},
    {"memoryThrottlingFactor", Type::kNumber},
    {"memoryReservationPolicy", Type::kText},
    {"registerWithTaints", Type::kList, true},
    {"registerWithTaints.key", Type::kText, true},
    {"registerWithTaints.value", Type::kText, true},
    {"registerWithTaints.effect", Type::kText, true},
    {"registerWithTaints.timeAdded", Type::kTime},
    {"registerNode", Type::kBool, true},
    {"tracing", Type::kObject},
    {"tracing.endpoint", Type::kText},
    {"tracing.samplingRatePerMillion", Type::kInt32},
    {"localStorageCapacityIsolation", Type::kBool},
    {"containerRuntimeEndpoint", Type::kText, true},
    {"imageServiceEndpoint", Type::kText},
    {"failCgroupV1", Type::kBool},
    {"userNamespaces", Type::kObject},
    {"userNamespaces.idsPerPod", Type::kInt64},
};

const Field* FindField(std::string_view path) {
  for (const Field& field : kFields) {
    if (field.path == path) return &field;
  }
  return nullptr;
}

// A known field of `parent` that differs from `name` only in case or hyphens.
std::string_view FindSpelling(std::string_view parent, std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string out = ToLower(text);
    std::erase(out, '-');
    std::erase(out, '_');
    return out;
  };
  for (const Field& field : kFields) {
    std::string_view path = field.path;
    if (!parent.empty()) {
      if (!path.starts_with(parent) || path.size() <= parent.size() + 1 ||
          path[parent.size()] != '.') {
        continue;
      }
      path.remove_prefix(parent.size() + 1);
    }
    if (path.find('.') == std::string_view::npos && plain(path) == plain(name)) return path;
  }
  return "";
}

bool IsInt(Value value, std::int64_t least, std::int64_t most) {
  const auto number = value.optional_integer();
  return number && *number >= least && *number <= most;
}

bool IsNumber(Value value) {
  return value.kind() == api::ValueKind::kInt || value.kind() == api::ValueKind::kDouble;
}

bool IsQuantity(Value value) {
  if (IsNumber(value)) return true;
  return value.is_string() && api::Quantity::Parse(value.str()).ok();
}

bool IsDuration(Value value) {
  return value.is_string() && api::ParseDuration(value.str()).ok();
}

// Returns what was expected if the value has the wrong type, otherwise an empty string. For lists
// and maps, `at` gets the path to the wrong element.
std::string_view WantedInstead(Value value, Type type, std::vector<std::string>& at) {
  constexpr auto kInt32 = std::numeric_limits<std::int32_t>();
  constexpr auto kInt64 = std::numeric_limits<std::int64_t>();
  const auto each_element = [&](Type element) -> std::string_view {
    if (!value.is_array()) return "a list";
    std::size_t index = 0;
    for (Value each : value.elements()) {
      at.push_back(std::to_string(index++));
      const std::string_view wanted = WantedInstead(each, element, at);
      if (!wanted.empty()) return wanted;
      at.pop_back();
    }
    return "";
  };
  const auto each_member = [&](Type member) -> std::string_view {
    if (!value.is_object()) return "a map";
    for (const api::MemberView each : value.members()) {
      at.emplace_back(each.name);
      const std::string_view wanted = WantedInstead(each.value, member, at);
      if (!wanted.empty()) return wanted;
      at.pop_back();
    }
    return "";
  };
  if (!value.has_value()) return "";  // null counts as absent
  switch (type) {
    case Type::kBool:
      return value.optional_boolean() ? "" : "true or false";
    case Type::kInt32:
      return IsInt(value, kInt32.min(), kInt32.max()) ? "" : "a 32-bit integer";
    case Type::kUint32:
      return IsInt(value, 0, std::numeric_limits<std::uint32_t>::max())
                 ? ""
                 : "a non-negative 32-bit integer";
    case Type::kInt64:
      return IsInt(value, kInt64.min(), kInt64.max()) ? "" : "an integer";
    case Type::kNumber:
      return IsNumber(value) ? "" : "a number";
    case Type::kText:
      return value.is_string() ? "" : "a string";
    case Type::kDuration:
      return IsDuration(value) ? "" : "a duration such as \"1m30s\"";
    case Type::kDurationOrInt:
      return IsDuration(value) || value.optional_integer() ? "" : "a duration such as \"1m30s\"";
    case Type::kQuantity:
      return IsQuantity(value) ? "" : "a quantity such as \"10Mi\"";
    case Type::kTime:
      return value.is_string() && api::ParseTime(value.str()).ok() ? "" : "a time (RFC 3339)";
    case Type::kObject:
      return value.is_object() ? "" : "a map";
    case Type::kList:
      return each_element(Type::kObject);
    case Type::kTexts:
      return each_element(Type::kText);
    case Type::kInts:
      return each_element(Type::kInt32);
    case Type::kMapOfBools:
      return each_member(Type::kBool);
    case Type::kMapOfTexts:
      return each_member(Type::kText);
    case Type::kMapOfTextLists:
      return each_member(Type::kTexts);
    case Type::kMapOfQuantities:
      return each_member(Type::kQuantity);
  }
  return "";
}

class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  // Checks the members of one object. `path` is its path in the table, `at` in the file.
  Result<void> Check(Value object, const std::string& path, std::vector<std::string>& at) {
    for (const api::MemberView member : object.members()) {
      const std::string name =
          path.empty() ? std::string(member.name) : StrCat(path, ".", member.name);
      at.emplace_back(member.name);
      const Field* field = FindField(name);
      if (field == nullptr) {
        const std::string_view meant = FindSpelling(path, member.name);
        return Refuse(at, meant.empty() ? std::string("no such field")
                                        : StrCat("no such field; the correct spelling is ", meant));
      }
      std::vector<std::string> part = at;
      const std::string_view wanted = WantedInstead(member.value, field->type, part);
      if (!wanted.empty()) return Refuse(part, StrCat("must be ", wanted));
      if (field->type == Type::kObject) {
        RETURN_IF_ERROR(Check(member.value, name, at));
      } else if (field->type == Type::kList) {
        std::size_t index = 0;
        for (Value each : member.value.elements()) {
          at.push_back(std::to_string(index++));
          RETURN_IF_ERROR(Check(each, name, at));
          at.pop_back();
        }
      }
      if (!field->acts && member.value.has_value() && at.size() == 1) ignored_.push_back(name);
      at.pop_back();
    }
    return Ok();
  }

  Error Refuse(const std::vector<std::string>& at, std::string_view why) const {
    std::string message = StrCat(Join(at, "."), ": ", why);
    if (const auto position = api::LocateYaml(text_, at)) {
      message += StrCat(": line ", position->line, ", column ", position->column);
    }
    return InvalidArgument(std::move(message));
  }

  std::vector<std::string> TakeIgnored() { return std::move(ignored_); }

 private:
  const std::string_view text_;
  std::vector<std::string> ignored_;
};

}  // namespace

Result<std::vector<std::string>> CheckKubeletFields(Value root, std::string_view text) {
  Checker checker(text);
  std::vector<std::string> at;
  RETURN_IF_ERROR(checker.Check(root, "", at));
  const auto check_is = [&](api::FieldName field, std::string_view wanted) -> Result<void> {
    if (!root[field].has_value() || root[field].str() == wanted) return Ok();
    return checker.Refuse({std::string(field)}, StrCat("must be ", wanted));
  };
  RETURN_IF_ERROR(check_is("apiVersion", kApiVersion));
  RETURN_IF_ERROR(check_is("kind", kKind));
  return checker.TakeIgnored();
}

}  // namespace drakkar::cmd
