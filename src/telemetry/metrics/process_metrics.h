#pragma once

namespace drakkar {

class FileSystem;
class Metrics;

// Brings the metrics of this process up to date, under the names that every Prometheus client has:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds. What /proc does not tell is left
// out.
void UpdateProcessMetrics(FileSystem& files, Metrics& metrics);

}  // namespace drakkar
