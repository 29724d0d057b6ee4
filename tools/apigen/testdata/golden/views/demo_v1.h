// Made by tools/apigen from schema/.
#pragma once

#include "api/keys.h"
#include "api/views/view_base.h"

namespace drakkar::api::demo_v1 {

class ShipMetaView : public View {
 public:
  using View::View;
  std::string_view name() const { return view_[key::kName].str(); }
  bool has_name() const { return view_[key::kName].has_value(); }
  std::string_view namespace_() const { return view_[key::kNamespace].str(); }
  bool has_namespace() const { return view_[key::kNamespace].has_value(); }
  StringMapView labels() const { return StringMapView(view_[key::kLabels]); }
  bool has_labels() const { return view_[key::kLabels].has_value(); }
};

class SailorView : public View {
 public:
  using View::View;
  std::string_view name() const { return view_[key::kName].str(); }
  bool has_name() const { return view_[key::kName].has_value(); }
  std::string_view rank() const { return view_[key::kRank].str(); }
  bool has_rank() const { return view_[key::kRank].has_value(); }
  std::string_view value_() const { return view_[key::kValue].str(); }
  bool has_value() const { return view_[key::kValue].has_value(); }
  StringListView pod_ips() const { return StringListView(view_[key::kPodIPs]); }
  bool has_pod_ips() const { return view_[key::kPodIPs].has_value(); }
};

class HarbourView : public View {
 public:
  using View::View;
  std::int64_t port() const { return view_[key::kCapitalPort].integer(); }
  bool has_port() const { return view_[key::kCapitalPort].has_value(); }
};

class ShipSpecView : public View {
 public:
  using View::View;
  std::int64_t oars() const { return view_[key::kOars].integer(); }
  bool has_oars() const { return view_[key::kOars].has_value(); }
  ListView<SailorView> crew() const { return ListView<SailorView>(view_[key::kCrew]); }
  bool has_crew() const { return view_[key::kCrew].has_value(); }
  StringListView ports() const { return StringListView(view_[key::kPorts]); }
  bool has_ports() const { return view_[key::kPorts].has_value(); }
  StringMapView stores() const { return StringMapView(view_[key::kStores]); }
  bool has_stores() const { return view_[key::kStores].has_value(); }
  StringMapView selector() const { return StringMapView(view_[key::kSelector]); }
  bool has_selector() const { return view_[key::kSelector].has_value(); }
  HarbourView home() const { return HarbourView(view_[key::kHome]); }
  bool has_home() const { return view_[key::kHome].has_value(); }
  std::string_view sail() const { return view_[key::kSail].str(); }
  bool has_sail() const { return view_[key::kSail].has_value(); }
  std::int64_t mast_count() const { return view_[key::kMastCount].integer(); }
  bool has_mast_count() const { return view_[key::kMastCount].has_value(); }
  Value options() const { return view_[key::kOptions]; }
  bool has_options() const { return view_[key::kOptions].has_value(); }
  Value berth() const { return view_[key::kBerth]; }
  bool has_berth() const { return view_[key::kBerth].has_value(); }
};

class ArrivalTimeView : public View {
 public:
  using View::View;
  std::string_view at() const { return view_[key::kAt].str(); }
  bool has_at() const { return view_[key::kAt].has_value(); }
  std::int64_t port() const { return view_[key::kPort].integer(); }
  bool has_port() const { return view_[key::kPort].has_value(); }
};

class ShipStatusView : public View {
 public:
  using View::View;
  ListView<ArrivalTimeView> arrivals() const { return ListView<ArrivalTimeView>(view_[key::kArrivals]); }
  bool has_arrivals() const { return view_[key::kArrivals].has_value(); }
  MapView<ListView<std::int64_t>> counts() const { return MapView<ListView<std::int64_t>>(view_[key::kCounts]); }
  bool has_counts() const { return view_[key::kCounts].has_value(); }
};

class ShipView : public View {
 public:
  using View::View;
  std::string_view kind() const { return view_[key::kKind].str(); }
  bool has_kind() const { return view_[key::kKind].has_value(); }
  std::string_view api_version() const { return view_[key::kApiVersion].str(); }
  bool has_api_version() const { return view_[key::kApiVersion].has_value(); }
  ShipMetaView metadata() const { return ShipMetaView(view_[key::kMetadata]); }
  bool has_metadata() const { return view_[key::kMetadata].has_value(); }
  ShipSpecView spec() const { return ShipSpecView(view_[key::kSpec]); }
  bool has_spec() const { return view_[key::kSpec].has_value(); }
  ShipStatusView status() const { return ShipStatusView(view_[key::kStatus]); }
  bool has_status() const { return view_[key::kStatus].has_value(); }
};

class ShipListView : public View {
 public:
  using View::View;
  std::string_view kind() const { return view_[key::kKind].str(); }
  bool has_kind() const { return view_[key::kKind].has_value(); }
  std::string_view api_version() const { return view_[key::kApiVersion].str(); }
  bool has_api_version() const { return view_[key::kApiVersion].has_value(); }
  ShipMetaView metadata() const { return ShipMetaView(view_[key::kMetadata]); }
  bool has_metadata() const { return view_[key::kMetadata].has_value(); }
  ListView<ShipView> items() const { return ListView<ShipView>(view_[key::kItems]); }
  bool has_items() const { return view_[key::kItems].has_value(); }
};

}  // namespace drakkar::api::demo_v1
