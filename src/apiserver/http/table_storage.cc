#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

// "RWO,ROX", in a fixed order, each once.
std::string AccessModes(Value modes) {
  constexpr std::string_view kModes[][2] = {{"ReadWriteOnce", "RWO"},
                                            {"ReadOnlyMany", "ROX"},
                                            {"ReadWriteMany", "RWX"},
                                            {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string_view> shorts;
  for (const auto& [mode, text] : kModes) {
    for (Value each : modes.elements()) {
      if (each.str() != mode) continue;
      shorts.push_back(text);
      break;
    }
  }
  return Join(shorts, ",");
}

// The annotation predates the field and takes precedence.
std::string_view StorageClassOf(const Cells& cells) {
  const Value annotation =
      cells["metadata"]["annotations"].Entry("volume.beta.kubernetes.io/storage-class");
  return annotation.exists() ? annotation.str() : cells["spec"]["storageClassName"].str();
}

std::string_view PhaseOf(const Cells& cells) {
  return cells.object().is_being_deleted() ? "Terminating" : cells["status"]["phase"].str();
}

void WriteVolume(Cells& cells) {
  const Value spec = cells["spec"];
  const Value claim = spec["claimRef"];
  cells.AddName();
  cells.AddText(spec["capacity"].Entry("storage").str());
  cells.Add(AccessModes(spec["accessModes"]));
  cells.AddText(spec["persistentVolumeReclaimPolicy"].str());
  cells.AddText(PhaseOf(cells));
  cells.Add(claim.has_value() ? StrCat(claim["namespace"].str(), "/", claim["name"].str())
                              : std::string());
  cells.AddText(StorageClassOf(cells));
  cells.AddText(spec["volumeAttributesClassName"].str(), "<unset>");
  cells.AddText(cells["status"]["reason"].str());
  cells.AddAge();
  cells.AddText(spec["volumeMode"].str(), "<unset>");
}

void WriteVolumeClaim(Cells& cells) {
  const Value spec = cells["spec"];
  const std::string_view volume = spec["volumeName"].str();
  // An unbound claim has no size of its own.
  const bool bound = !volume.empty();
  cells.AddName();
  cells.AddText(PhaseOf(cells));
  cells.AddText(volume);
  cells.AddText(bound ? cells["status"]["capacity"].Entry("storage").str() : std::string_view());
  cells.Add(bound ? AccessModes(cells["status"]["accessModes"]) : std::string());
  cells.AddText(StorageClassOf(cells));
  cells.AddText(spec["volumeAttributesClassName"].str(), "<unset>");
  cells.AddAge();
  cells.AddText(spec["volumeMode"].str(), "<unset>");
}

void WriteStorageClass(Cells& cells) {
  std::string name(cells.object().name());
  if (cells["metadata"]["annotations"].Entry("storageclass.kubernetes.io/is-default-class").str() ==
      "true") {
    name += " (default)";
  }
  cells.Add(std::move(name));
  cells.AddText(cells["provisioner"].str());
  cells.AddText(cells["reclaimPolicy"].str(), "Delete");
  cells.AddText(cells["volumeBindingMode"].str(), "<unset>");
  cells.Add(cells["allowVolumeExpansion"].boolean() ? "true" : "false");
  cells.AddAge();
}

void WriteCsiDriver(Cells& cells) {
  const Value spec = cells["spec"];
  std::vector<std::string_view> audiences;
  for (Value each : spec["tokenRequests"].elements()) audiences.push_back(each["audience"].str());
  cells.AddName();
  cells.Add(spec["attachRequired"].boolean(true));
  cells.Add(spec["podInfoOnMount"].boolean());
  cells.Add(spec["storageCapacity"].boolean());
  cells.AddText(Join(audiences, ","), "<unset>");
  cells.Add(spec["requiresRepublish"].boolean());
  cells.AddText(JoinTexts(spec["volumeLifecycleModes"], ","), "<unset>");
  cells.AddAge();
}

void WriteCsiNode(Cells& cells) {
  cells.AddName();
  cells.Add(cells["spec"]["drivers"].size());
  cells.AddAge();
}

void WriteCsiCapacity(Cells& cells) {
  cells.AddName();
  cells.AddText(cells["storageClassName"].str());
  cells.AddText(cells["capacity"].str(), "<unset>");
}

void WriteAttachment(Cells& cells) {
  const Value spec = cells["spec"];
  cells.AddName();
  cells.AddText(spec["attacher"].str());
  cells.AddText(spec["source"]["persistentVolumeName"].str());
  cells.AddText(spec["nodeName"].str());
  cells.Add(cells["status"]["attached"].boolean());
  cells.AddAge();
}

void WriteAttributesClass(Cells& cells) {
  cells.AddName();
  cells.AddText(cells["driverName"].str());
  cells.AddAge();
}

}  // namespace

std::vector<CellWriterEntry> StorageCellWriters() {
  constexpr std::string_view kGroup = "storage.k8s.io";
  return {
      {"", "PersistentVolume", WriteVolume},
      {"", "PersistentVolumeClaim", WriteVolumeClaim},
      {kGroup, "StorageClass", WriteStorageClass},
      {kGroup, "CSIDriver", WriteCsiDriver},
      {kGroup, "CSINode", WriteCsiNode},
      {kGroup, "CSIStorageCapacity", WriteCsiCapacity},
      {kGroup, "VolumeAttachment", WriteAttachment},
      {kGroup, "VolumeAttributesClass", WriteAttributesClass},
  };
}

}  // namespace drakkar::apiserver
