#include "bench/load/figures.h"

#include <cmath>
#include <cstdio>

#include "base/text/text.h"

namespace drakkar::load {
namespace {

std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

}  // namespace

Duration Samples::Percentile(double percent) const {
  if (values_.empty()) return Duration::zero();
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(values_.size()));
  const std::size_t index =
      std::min(values_.size() - 1, static_cast<std::size_t>(std::max(rank, 1.0)) - 1);
  std::nth_element(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(index),
                   values_.end());
  return values_[index];
}

void Detail::Number(std::string_view name, double value) {
  if (!members_.empty()) members_ += ", ";
  members_ += StrCat(Quote(name), ": ", NumberText(value));
}

void Detail::Text(std::string_view name, std::string_view value) {
  if (!members_.empty()) members_ += ", ";
  members_ += StrCat(Quote(name), ": ", Quote(value));
}

void Detail::Latency(std::string_view prefix, const Samples& samples) {
  Number(StrCat(prefix, "_p50_ms"), Milliseconds(samples.Percentile(50)));
  Number(StrCat(prefix, "_p99_ms"), Milliseconds(samples.Percentile(99)));
}

std::string FiguresJson(const std::vector<Figure>& figures) {
  std::string out = "[";
  for (const Figure& figure : figures) {
    if (out.size() > 1) out += ",\n ";
    out += StrCat("{\"id\": ", Quote(figure.id), ", \"value\": ", NumberText(figure.value),
                  ", \"unit\": ", Quote(figure.unit), ", \"detail\": ", figure.detail.Json(), "}");
  }
  return out + "]\n";
}

}  // namespace drakkar::load
