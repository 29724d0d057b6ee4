#pragma once

namespace drakkar {

class FileSystem;
class Metrics;

// Updates the metrics of this process, under the names that every Prometheus client uses:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds. Values that /proc does not provide
// are omitted.
void UpdateProcessMetrics(FileSystem& files, Metrics& metrics);

}  // namespace drakkar
