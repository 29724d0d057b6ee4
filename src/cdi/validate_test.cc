#include "cdi/validate.h"

#include <gtest/gtest.h>

#include <functional>

namespace drakkar::cdi {
namespace {

Spec SmallSpec() {
  Spec spec{.cdi_version = "1.1.0", .kind = "vendor.com/class"};
  spec.devices = {{.name = "dev", .container_edits = {.env = {"A=B"}}}};
  return spec;
}

TEST(Validate, AcceptsASmallSpec) {
  const Result<void> valid = ValidateSpec(SmallSpec());
  EXPECT_TRUE(valid.ok()) << valid.error().message;
}

TEST(Validate, KnowsTheVersionEachFeatureNeeds) {
  struct Case {
    std::string_view minimum;
    std::function<void(Spec&)> change;
  };
  const Case cases[] = {
      {"0.3.0", [](Spec&) {}},
      {"0.4.0",
       [](Spec& s) {
         s.container_edits.mounts = {{.host_path = "/a", .container_path = "/b", .type = "tmpfs"}};
       }},
      {"0.5.0", [](Spec& s) { s.devices[0].name = "0dev"; }},
      {"0.5.0",
       [](Spec& s) {
         s.devices[0].container_edits.device_nodes = {{.path = "/dev/a", .host_path = "/dev/b"}};
       }},
      {"0.6.0", [](Spec& s) { s.annotations["a"] = "b"; }},
      {"0.6.0", [](Spec& s) { s.devices[0].annotations["a"] = "b"; }},
      {"0.6.0", [](Spec& s) { s.kind = "vendor.com/my.class"; }},
      {"0.7.0", [](Spec& s) { s.container_edits.additional_gids = {7}; }},
      {"0.7.0", [](Spec& s) { s.container_edits.intel_rdt = IntelRdt{.clos_id = "x"}; }},
      {"1.1.0", [](Spec& s) { s.container_edits.intel_rdt = IntelRdt{.schemata = {"L3:0=f"}}; }},
      {"1.1.0", [](Spec& s) { s.container_edits.intel_rdt = IntelRdt{.enable_monitoring = true}; }},
      {"1.1.0",
       [](Spec& s) {
         s.devices[0].container_edits.net_devices = {
             {.host_interface_name = "eth1", .name = "net0"}};
       }},
  };
  for (const Case& each : cases) {
    Spec spec = SmallSpec();
    each.change(spec);
    EXPECT_EQ(MinimumVersion(spec), each.minimum);
    spec.cdi_version = std::string(each.minimum);
    EXPECT_TRUE(ValidateSpec(spec).ok()) << each.minimum;
    spec.cdi_version = "0.2.0";
    EXPECT_EQ(ValidateSpec(spec).error().message,
              "cdiVersion is 0.2.0, but the spec needs " + std::string(each.minimum) + " or newer");
  }
}

TEST(Validate, RejectsInvalidSpecsWithAClearMessage) {
  struct Case {
    std::string_view message;
    std::function<void(Spec&)> change;
  };
  const Case cases[] = {
      {"unknown cdiVersion \"1.2.0\"", [](Spec& s) { s.cdi_version = "1.2.0"; }},
      {"unknown cdiVersion \"\"", [](Spec& s) { s.cdi_version = ""; }},
      {"kind \"vendor\" is not of the form <vendor>/<class>", [](Spec& s) { s.kind = "vendor"; }},
      {"the spec has no devices", [](Spec& s) { s.devices.clear(); }},
      {"device \"dev\" is defined twice", [](Spec& s) { s.devices.push_back(s.devices[0]); }},
      {"device \"dev\" has no edits", [](Spec& s) { s.devices[0].container_edits = {}; }},
      {"device name must not be empty", [](Spec& s) { s.devices[0].name = ""; }},
      {"device \"dev\": environment variable \"A\" is not of the form NAME=VALUE",
       [](Spec& s) { s.devices[0].container_edits.env = {"A"}; }},
      {"environment variable \"=A\" is not of the form NAME=VALUE",
       [](Spec& s) { s.container_edits.env = {"=A"}; }},
      {"device node without a path", [](Spec& s) { s.container_edits.device_nodes = {{}}; }},
      {"device node /dev/x: type \"cc\" must be b, c, u or p",
       [](Spec& s) { s.container_edits.device_nodes = {{.path = "/dev/x", .type = "cc"}}; }},
      {"device node /dev/x: negative device number -1:0",
       [](Spec& s) { s.container_edits.device_nodes = {{.path = "/dev/x", .major = -1}}; }},
      {"device node /dev/x: permissions \"rx\" must be a combination of r, w and m, or none",
       [](Spec& s) { s.container_edits.device_nodes = {{.path = "/dev/x", .permissions = "rx"}}; }},
      {"unknown hook name \"before\"",
       [](Spec& s) { s.container_edits.hooks = {{.hook_name = "before", .path = "/x"}}; }},
      {"hook prestart has no path",
       [](Spec& s) { s.container_edits.hooks = {{.hook_name = "prestart"}}; }},
      {"a mount needs both hostPath and containerPath",
       [](Spec& s) { s.container_edits.mounts = {{.host_path = "/x"}}; }},
      {"net device name \"n\" is used twice",
       [](Spec& s) {
         s.container_edits.net_devices = {{.host_interface_name = "a", .name = "n"},
                                          {.host_interface_name = "b", .name = "n"}};
       }},
      {"intelRdt: closID \"a/b\" is not a valid file name",
       [](Spec& s) { s.container_edits.intel_rdt = IntelRdt{.clos_id = "a/b"}; }},
      {"annotation key \"/x\" is not a valid name", [](Spec& s) { s.annotations["/x"] = ""; }},
  };
  for (const Case& each : cases) {
    Spec spec = SmallSpec();
    each.change(spec);
    const Result<void> valid = ValidateSpec(spec);
    ASSERT_FALSE(valid.ok()) << each.message;
    EXPECT_EQ(valid.error().message, each.message);
  }
}

}  // namespace
}  // namespace drakkar::cdi
