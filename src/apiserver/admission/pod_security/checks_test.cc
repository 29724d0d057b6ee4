#include "apiserver/admission/pod_security/checks.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::apiserver::pod_security {
namespace {

constexpr int kNewest = 37;

api::TreePtr Parse(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return tree.ok() ? *tree : nullptr;
}

// The violations of a level as of a release, worded as in Kubernetes; "" if the pod is allowed.
std::string Verdict(Level level, int minor, std::string_view spec,
                    std::string_view metadata = "{}") {
  const api::TreePtr tree = Parse(spec);
  const api::TreePtr meta = Parse(metadata);
  return Details(Violations({level, minor}, kNewest, meta->root(), tree->root()));
}

// A pod that every level accepts, with additions to its container and to its spec.
std::string Harmless(std::string_view in_container = "", std::string_view in_spec = "") {
  return StrCat(R"({"securityContext":{"runAsNonRoot":true,)",
                R"("seccompProfile":{"type":"RuntimeDefault"}},)",
                R"("containers":[{"name":"a","image":"i","securityContext":)",
                R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]})",
                in_container.empty() ? "" : ",", in_container, "}}]", in_spec.empty() ? "" : ",",
                in_spec, "}");
}

TEST(PodSecurityChecks, AHarmlessPodPassesEveryLevelOfEveryRelease) {
  for (int minor = 0; minor <= kNewest + 1; ++minor) {
    EXPECT_EQ(Verdict(Level::kBaseline, minor, Harmless()), "") << minor;
    EXPECT_EQ(Verdict(Level::kRestricted, minor, Harmless()), "") << minor;
  }
}

TEST(PodSecurityChecks, APlainPodViolatesOnlyTheRestrictedLevel) {
  const std::string plain = R"({"containers":[{"name":"a","image":"i"}]})";
  EXPECT_EQ(Verdict(Level::kPrivileged, kLatest, plain), "");
  EXPECT_EQ(Verdict(Level::kBaseline, kLatest, plain), "");
  EXPECT_EQ(Verdict(Level::kRestricted, kLatest, plain),
            "allowPrivilegeEscalation != false (container \"a\" must set "
            "securityContext.allowPrivilegeEscalation=false), "
            "unrestricted capabilities (container \"a\" must set "
            "securityContext.capabilities.drop=[\"ALL\"]), "
            "runAsNonRoot != true (pod or container \"a\" must set "
            "securityContext.runAsNonRoot=true), "
            "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type "
            "to \"RuntimeDefault\" or \"Localhost\")");
}

TEST(PodSecurityChecks, ThePrivilegedLevelAcceptsEverything) {
  EXPECT_EQ(Verdict(Level::kPrivileged, kLatest,
                    R"({"hostNetwork":true,"containers":[{"name":"a",
                        "securityContext":{"privileged":true}}]})"),
            "");
}

struct Case {
  std::string_view what;
  Level level;
  int minor;
  std::string spec;
  std::string metadata;
  std::string verdict;
};

class PodSecurityCheck : public ::testing::TestWithParam<Case> {};

TEST_P(PodSecurityCheck, HasTheMessagesOfKubernetes) {
  const Case& each = GetParam();
  EXPECT_EQ(Verdict(each.level, each.minor, each.spec, each.metadata), each.verdict) << each.what;
}

constexpr Level kBase = Level::kBaseline;
constexpr Level kStrict = Level::kRestricted;

const Case kCases[] = {
    {"host namespaces, in the order of the fields", kBase, kLatest,
     R"({"hostIPC":true,"hostPID":true,"hostNetwork":true})", "{}",
     "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
    {"privileged containers of every list", kBase, kLatest,
     R"({"initContainers":[{"name":"i","securityContext":{"privileged":true}}],
         "containers":[{"name":"c","securityContext":{"privileged":true}},
                       {"name":"fine","securityContext":{"privileged":false}}],
         "ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]})",
     "{}",
     "privileged (containers \"i\", \"c\", \"e\" must not set securityContext.privileged=true)"},
    {"capabilities beyond the default ones", kBase, kLatest,
     R"({"containers":[{"name":"a","securityContext":{"capabilities":
         {"add":["SYS_ADMIN","CHOWN","NET_RAW"]}}}]})",
     "{}",
     "non-default capabilities (container \"a\" must not include \"NET_RAW\", \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)"},
    {"host paths", kBase, kLatest,
     R"({"volumes":[{"name":"x","hostPath":{"path":"/"}},{"name":"y","emptyDir":{}},
                    {"name":"z","hostPath":{"path":"/"}}]})",
     "{}", "hostPath volumes (volumes \"x\", \"z\")"},
    {"host ports, sorted as text", kBase, kLatest,
     R"({"containers":[{"name":"a","ports":[{"hostPort":9090},{"hostPort":80},{"hostPort":0}]},
                       {"name":"b","ports":[{"hostPort":80}]}]})",
     "{}", "hostPort (containers \"a\", \"b\" use hostPorts 80, 9090)"},
    {"a host in a probe", kBase, kLatest,
     R"({"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"10.0.0.1","port":1}}}]})",
     "{}", "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"10.0.0.1\")"},
    {"hosts in a handler and in a socket probe", kBase, kLatest,
     R"({"containers":[{"name":"b","lifecycle":{"preStop":{"httpGet":{"host":"h"}}}},
                       {"name":"a","startupProbe":{"tcpSocket":{"host":"g"}}}]})",
     "{}",
     "probe or lifecycle host (containers \"a\", \"b\" use probe or lifecycle hosts \"g\", "
     "\"h\")"},
    {"hosts of probes were free before 1.34", kBase, 33,
     R"({"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"10.0.0.1"}}}]})", "{}", ""},
    {"AppArmor turned off", kBase, kLatest,
     R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}},"containers":[{"name":"a",
         "securityContext":{"appArmorProfile":{"type":"Unconfined"}}}]})",
     R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"}})",
     "forbidden AppArmor profiles (pod and container \"a\" and annotation must not set AppArmor "
     "profile type to \"Unconfined\", "
     "\"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")"},
    {"AppArmor as it should be", kBase, kLatest,
     R"({"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}})",
     R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"localhost/x",
         "container.apparmor.security.beta.kubernetes.io/b":"runtime/default"}})",
     ""},
    {"an unmasked /proc", kBase, kLatest,
     R"({"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})", "{}",
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {"an unmasked /proc in a user namespace", kBase, kLatest,
     R"({"hostUsers":false,"containers":[{"name":"a","securityContext":
         {"procMount":"Unmasked"}}]})",
     "{}", ""},
    {"a user namespace did not matter before 1.35", kBase, 34,
     R"({"hostUsers":false,"containers":[{"name":"a","securityContext":
         {"procMount":"Unmasked"}}]})",
     "{}", "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {"a user namespace does not matter to the restricted /proc", kStrict, kLatest,
     Harmless(R"("procMount":"Unmasked")", R"("hostUsers":false)"), "{}",
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {"SELinux types, users and roles", kBase, kLatest,
     R"({"securityContext":{"seLinuxOptions":{"type":"spc_t","user":"u"}},
         "containers":[{"name":"a","securityContext":{"seLinuxOptions":{"role":"r"}}}]})",
     "{}",
     "seLinuxOptions (pod and container \"a\" set forbidden securityContext.seLinuxOptions: type "
     "\"spc_t\"; user may not be set; role may not be set)"},
    {"container_engine_t since 1.31", kBase, 31,
     R"({"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}})", "{}", ""},
    {"container_engine_t before 1.31", kBase, 30,
     R"({"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}})", "{}",
     "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "
     "\"container_engine_t\")"},
    {"no seccomp", kBase, kLatest,
     R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}}})", "{}",
     "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
    {"seccomp as an annotation up to 1.18", kBase, 18, R"({"containers":[{"name":"a"}]})",
     R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined",
         "container.seccomp.security.alpha.kubernetes.io/a":"x"}})",
     "seccompProfile (forbidden annotations "
     "container.seccomp.security.alpha.kubernetes.io/a=\"x\", "
     "seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")"},
    {"seccomp annotations mean nothing later", kBase, 19, R"({"containers":[{"name":"a"}]})",
     R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}})", ""},
    {"sysctls in the order given", kBase, kLatest,
     R"({"securityContext":{"sysctls":[{"name":"kernel.msgmax"},{"name":"net.ipv4.tcp_rmem"},
         {"name":"net.ipv4.tcp_notsent_lowat"},{"name":"a"}]}})",
     "{}", "forbidden sysctls (kernel.msgmax, a)"},
    {"a sysctl that is safe since 1.27", kBase, 26,
     R"({"securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"}]}})", "{}",
     "forbidden sysctls (net.ipv4.ip_local_reserved_ports)"},
    {"a sysctl that is safe since 1.29", kBase, 28,
     R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_fin_timeout"},
         {"name":"net.ipv4.ip_local_reserved_ports"}]}})",
     "{}", "forbidden sysctls (net.ipv4.tcp_fin_timeout)"},
    {"a sysctl that is safe since 1.32", kBase, 31,
     R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_wmem"},
         {"name":"net.ipv4.tcp_fin_timeout"}]}})",
     "{}", "forbidden sysctls (net.ipv4.tcp_wmem)"},
    {"a sysctl that is safe since 1.37", kBase, 36,
     R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_slow_start_after_idle"},
         {"name":"net.ipv4.tcp_wmem"}]}})",
     "{}", "forbidden sysctls (net.ipv4.tcp_slow_start_after_idle)"},
    {"processes of the host, on Windows", kBase, kLatest,
     R"({"securityContext":{"windowsOptions":{"hostProcess":true}},"containers":[{"name":"a",
         "securityContext":{"windowsOptions":{"hostProcess":true}}}]})",
     "{}",
     "hostProcess (pod and container \"a\" must not set "
     "securityContext.windowsOptions.hostProcess=true)"},
    {"privilege escalation that is not forbidden", kStrict, 21,
     R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"Localhost"}},
         "containers":[{"name":"a"},{"name":"b","securityContext":
         {"allowPrivilegeEscalation":true}}]})",
     "{}",
     "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {"no check of privilege escalation before 1.8", kStrict, 7,
     R"({"securityContext":{"runAsNonRoot":true},"containers":[{"name":"a"}]})", "{}", ""},
    {"Windows pods need none of that since 1.25", kStrict, 25,
     R"({"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true},
         "containers":[{"name":"a"}]})",
     "{}", ""},
    {"Windows pods needed it before", kStrict, 24,
     R"({"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true},
         "containers":[{"name":"a"}]})",
     "{}",
     "allowPrivilegeEscalation != false (container \"a\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"a\" "
     "must set securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (pod or container "
     "\"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"},
    {"capabilities of the restricted level, said once", kStrict, kLatest,
     R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
         "containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,
         "capabilities":{"drop":["NET_RAW"],"add":["SYS_ADMIN","NET_BIND_SERVICE"]}}}]})",
     "{}",
     "unrestricted capabilities (container \"a\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]; container \"a\" must not include \"SYS_ADMIN\" "
     "in securityContext.capabilities.add)"},
    {"before 1.22 the baseline's rule about capabilities holds", kStrict, 21,
     R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
         "containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,
         "capabilities":{"add":["SYS_ADMIN"]}}}]})",
     "{}",
     "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)"},
    {"volumes of the restricted level, host paths said once", kStrict, kLatest,
     Harmless("", R"("volumes":[{"name":"v","hostPath":{"path":"/"}},{"name":"w","nfs":{}},
         {"name":"x","secret":{}},{"name":"y"},{"name":"z","image":{}}])"),
     "{}",
     "restricted volume types (volumes \"v\", \"w\", \"y\" use restricted volume types "
     "\"hostPath\", \"nfs\", \"unknown\")"},
    {"root by default", kStrict, 7, R"({"containers":[{"name":"a"},{"name":"b","securityContext":
         {"runAsNonRoot":true}}]})",
     "{}",
     "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true)"},
    {"root on purpose", kStrict, 7,
     R"({"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a","securityContext":
         {"runAsNonRoot":false}}]})",
     "{}",
     "runAsNonRoot != true (pod and container \"a\" must not set "
     "securityContext.runAsNonRoot=false)"},
    {"the user root", kStrict, kLatest, Harmless(R"("runAsUser":0)"), "{}",
     "runAsUser=0 (container \"a\" must not set runAsUser=0)"},
    {"the user root before 1.23", kStrict, 22, Harmless(R"("runAsUser":0)"), "{}", ""},
    {"the user root in a user namespace", kStrict, kLatest,
     Harmless(R"("runAsUser":0,"runAsNonRoot":false)", R"("hostUsers":false)"), "{}", ""},
    {"the user root in a user namespace before 1.35", kStrict, 34,
     Harmless(R"("runAsUser":0,"runAsNonRoot":false)", R"("hostUsers":false)"), "{}",
     "runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false), "
     "runAsUser=0 (container \"a\" must not set runAsUser=0)"},
    {"a bad profile, said once by the restricted level", kStrict, kLatest,
     Harmless(R"("seccompProfile":{"type":"Unconfined"})"), "{}",
     "seccompProfile (container \"a\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\")"},
    {"releases of the future are the newest one", kStrict, 99, Harmless(R"("runAsUser":0)"), "{}",
     "runAsUser=0 (container \"a\" must not set runAsUser=0)"},
};

INSTANTIATE_TEST_SUITE_P(All, PodSecurityCheck, ::testing::ValuesIn(kCases));

TEST(PodSecurityChecks, AreInTheOrderOfTheirMessages) {
  const std::span<const Check> all = AllChecks();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto key = [](const Check& check) {
      return std::tuple(check.level, check.name, check.since_minor);
    };
    EXPECT_LT(key(all[i - 1]), key(all[i])) << all[i].name;
    EXPECT_TRUE(all[i].overrides.empty() || all[i].level == Level::kRestricted) << all[i].name;
  }
}

TEST(PodSecurityPolicy, ReadsTheLabelsOfANamespace) {
  api::FieldErrors errors;
  const api::TreePtr labels = Parse(R"({"pod-security.kubernetes.io/enforce":"baseline",
      "pod-security.kubernetes.io/enforce-version":"v1.30",
      "pod-security.kubernetes.io/audit":"restricted"})");
  const Policy policy = PolicyOf(labels->root(), errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(policy.enforce.ToString(), "baseline:v1.30");
  EXPECT_EQ(policy.audit.ToString(), "restricted:latest");
  EXPECT_EQ(policy.warn.ToString(), "baseline:v1.30") << "what is enforced is also warned of";
}

TEST(PodSecurityPolicy, ASeparateWarnLevelIsKept) {
  api::FieldErrors errors;
  const api::TreePtr labels = Parse(R"({"pod-security.kubernetes.io/enforce":"restricted",
      "pod-security.kubernetes.io/warn":"privileged"})");
  EXPECT_EQ(PolicyOf(labels->root(), errors).warn.ToString(), "privileged:latest");
}

TEST(PodSecurityPolicy, InvalidLabelsEnforceTheStrictestLevelAndWarnAboutNothing) {
  api::FieldErrors errors;
  const api::TreePtr labels = Parse(R"({"pod-security.kubernetes.io/enforce":"Baseline",
      "pod-security.kubernetes.io/enforce-version":"v1.01",
      "pod-security.kubernetes.io/audit":"","pod-security.kubernetes.io/warn":"x"})");
  const Policy policy = PolicyOf(labels->root(), errors);
  EXPECT_EQ(policy.enforce.ToString(), "restricted:latest");
  EXPECT_EQ(policy.audit.ToString(), "privileged:latest");
  EXPECT_EQ(policy.warn.ToString(), "privileged:latest");
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(errors[0].ToString(),
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"Baseline\": "
            "must be one of privileged, baseline, restricted");
  EXPECT_EQ(errors[1].ToString(),
            "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "
            "\"v1.01\": must be \"latest\" or \"v1.x\"");
}

TEST(PodSecurityPolicy, AVersionIsLatestOrAMinorOfOne) {
  for (const char* bad : {"1.30", "v1", "v1.", "v2.0", "v1.-1", "v1.99999999999999999999", "v1.+1",
                          "v1.30.1", "Latest", ""}) {
    api::FieldErrors errors;
    const api::TreePtr labels =
        Parse(StrCat(R"({"pod-security.kubernetes.io/warn-version":")", bad, "\"}"));
    PolicyOf(labels->root(), errors);
    EXPECT_EQ(errors.size(), 1u) << bad;
  }
}

}  // namespace
}  // namespace drakkar::apiserver::pod_security
