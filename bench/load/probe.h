#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/load/api.h"

namespace drakkar::load {

// Counters of the server's store from /metrics, and the resource usage of its processes.
struct Usage {
  std::map<std::string, double> counters;
  std::string file_system;
  Duration server_cpu{};
  Duration own_cpu{};
};

// Sums the samples in `text` (Prometheus' format) whose names start with "drakkar_store_".
void ReadStoreMetrics(std::string_view text, Usage& usage);

class Probe {
 public:
  // `pids` are the server's processes on this machine; empty if unknown.
  Probe(Api& api, std::vector<std::string> pids) : api_(api), pids_(std::move(pids)) {}

  Usage Take();
  // The difference of two readings per unit of work: writes, commits, syncs, CPU time.
  static void Describe(const Usage& before, const Usage& after, double units, std::string_view unit,
                       Detail& detail);
  // The proportional set size of the server's processes; 0 if unknown.
  double ServerPssBytes() const;

 private:
  Api& api_;
  std::vector<std::string> pids_;
};

}  // namespace drakkar::load
