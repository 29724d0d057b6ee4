#include "cdi/spec_writer.h"

#include <functional>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "cdi/internal/json_text.h"

namespace drakkar::cdi {
namespace {

// Appends indented JSON. Fields that are empty leave no trace; Begin and End frame the rest.
class Writer {
 public:
  std::string Take() { return std::move(out_); }

  void Begin(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void End(char bracket) {
    --depth_;
    if (!first_) NewLine();
    out_ += bracket;
    first_ = false;
  }
  void Key(std::string_view key) {
    Element();
    internal::AppendJsonString(key, &out_);
    out_ += ": ";
  }
  // Before each element of an array.
  void Element() {
    if (!first_) out_ += ',';
    first_ = false;
    NewLine();
  }
  void Literal(std::string_view text) { out_ += text; }
  void String(std::string_view text) { internal::AppendJsonString(text, &out_); }

  void Text(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    RequiredText(key, value);
  }
  void RequiredText(std::string_view key, std::string_view value) {
    Key(key);
    String(value);
  }
  void Integer(std::string_view key, std::int64_t value) {
    if (value != 0) RequiredInteger(key, value);
  }
  template <typename T>
  void Integer(std::string_view key, const std::optional<T>& value) {
    if (value.has_value()) RequiredInteger(key, *value);
  }
  void RequiredInteger(std::string_view key, std::int64_t value) {
    Key(key);
    out_ += std::to_string(value);
  }
  void Flag(std::string_view key, bool value) {
    if (!value) return;
    Key(key);
    out_ += "true";
  }
  void Texts(std::string_view key, const std::vector<std::string>& values) {
    Array(key, values, [this](const std::string& value) { String(value); });
  }
  void TextMap(std::string_view key, const std::map<std::string, std::string>& values) {
    if (values.empty()) return;
    Key(key);
    Begin('{');
    for (const auto& [name, value] : values) RequiredText(name, value);
    End('}');
  }
  template <typename Items, typename WriteItem>
  void Array(std::string_view key, const Items& items, WriteItem write) {
    if (items.empty()) return;
    Key(key);
    Begin('[');
    for (const auto& item : items) {
      Element();
      write(item);
    }
    End(']');
  }

 private:
  void NewLine() {
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  }

  std::string out_;
  int depth_ = 0;
  bool first_ = true;  // nothing yet inside the innermost bracket
};

void WriteDeviceNode(const DeviceNode& node, Writer* writer) {
  writer->Begin('{');
  writer->RequiredText("path", node.path);
  writer->Text("hostPath", node.host_path);
  writer->Text("type", node.type);
  writer->Integer("major", node.major);
  writer->Integer("minor", node.minor);
  writer->Integer("fileMode", node.file_mode);
  writer->Text("permissions", node.permissions);
  writer->Integer("uid", node.uid);
  writer->Integer("gid", node.gid);
  writer->End('}');
}

void WriteNetDevice(const NetDevice& device, Writer* writer) {
  writer->Begin('{');
  writer->RequiredText("hostInterfaceName", device.host_interface_name);
  writer->RequiredText("name", device.name);
  writer->End('}');
}

void WriteHook(const Hook& hook, Writer* writer) {
  writer->Begin('{');
  writer->RequiredText("hookName", hook.hook_name);
  writer->RequiredText("path", hook.path);
  writer->Texts("args", hook.args);
  writer->Texts("env", hook.env);
  writer->Integer("timeout", hook.timeout_seconds);
  writer->End('}');
}

void WriteMount(const Mount& mount, Writer* writer) {
  writer->Begin('{');
  writer->RequiredText("hostPath", mount.host_path);
  writer->RequiredText("containerPath", mount.container_path);
  writer->Texts("options", mount.options);
  writer->Text("type", mount.type);
  writer->End('}');
}

void WriteIntelRdt(const IntelRdt& rdt, Writer* writer) {
  writer->Begin('{');
  writer->Text("closID", rdt.clos_id);
  writer->Text("l3CacheSchema", rdt.l3_cache_schema);
  writer->Text("memBwSchema", rdt.mem_bw_schema);
  writer->Texts("schemata", rdt.schemata);
  writer->Flag("enableMonitoring", rdt.enable_monitoring);
  writer->Flag("enableCMT", rdt.enable_cmt);
  writer->Flag("enableMBM", rdt.enable_mbm);
  writer->End('}');
}

void WriteEdits(const ContainerEdits& edits, Writer* writer) {
  writer->Begin('{');
  writer->Texts("env", edits.env);
  writer->Array("deviceNodes", edits.device_nodes,
                [writer](const DeviceNode& node) { WriteDeviceNode(node, writer); });
  writer->Array("netDevices", edits.net_devices,
                [writer](const NetDevice& device) { WriteNetDevice(device, writer); });
  writer->Array("hooks", edits.hooks, [writer](const Hook& hook) { WriteHook(hook, writer); });
  writer->Array("mounts", edits.mounts,
                [writer](const Mount& mount) { WriteMount(mount, writer); });
  if (edits.intel_rdt.has_value()) {
    writer->Key("intelRdt");
    WriteIntelRdt(*edits.intel_rdt, writer);
  }
  writer->Array("additionalGids", edits.additional_gids,
                [writer](std::uint32_t gid) { writer->Literal(std::to_string(gid)); });
  writer->End('}');
}

}  // namespace

std::string WriteSpecJson(const Spec& spec) {
  Writer writer;
  writer.Begin('{');
  writer.RequiredText("cdiVersion", spec.cdi_version);
  writer.RequiredText("kind", spec.kind);
  writer.TextMap("annotations", spec.annotations);
  writer.Array("devices", spec.devices, [&writer](const Device& device) {
    writer.Begin('{');
    writer.RequiredText("name", device.name);
    writer.TextMap("annotations", device.annotations);
    writer.Key("containerEdits");
    WriteEdits(device.container_edits, &writer);
    writer.End('}');
  });
  // Written even when empty, as Go writes an empty struct.
  writer.Key("containerEdits");
  WriteEdits(spec.container_edits, &writer);
  writer.End('}');
  return writer.Take() + "\n";
}

}  // namespace drakkar::cdi
