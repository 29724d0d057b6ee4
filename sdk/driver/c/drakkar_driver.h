/* The driver SDK for C (C11), and for every language that can call C.
 *
 * Ownership: the caller owns a handle that a function returns and frees it with the function
 * named next to it. Handles and strings passed to a callback are valid until it returns. String
 * arguments are copied.
 *
 * Threads: a driver has its own thread. It makes all callbacks, one at a time; while one runs,
 * registration, health and other claims wait, so it should take milliseconds. If preparing takes
 * longer, use start_prepare and start_unprepare, and answer from a thread of your own. All
 * functions may be called from any thread and from callbacks, except that drakkar_driver_stop must
 * not be called from a callback. A handle must not be used by two threads at once.
 *
 * Errors: functions that can fail return 0 or a handle on success, and nonzero or NULL on
 * failure. Unless `error` is NULL, it then holds a message. No exception leaves this library.
 */
#ifndef DRAKKAR_DRIVER_H_
#define DRAKKAR_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRAKKAR_ERROR_BYTES 512

typedef struct drakkar_error {
  char message[DRAKKAR_ERROR_BYTES]; /* zero-terminated; truncated if too long */
} drakkar_error;

typedef struct drakkar_driver drakkar_driver;
typedef struct drakkar_resources drakkar_resources;
typedef struct drakkar_claim drakkar_claim; /* valid during a callback */
typedef struct drakkar_pod drakkar_pod;     /* valid during a callback */
/* A list of devices and their metadata: passed to the prepare callbacks, or created by the
 * driver for drakkar_driver_update_metadata. */
typedef struct drakkar_prepare_result drakkar_prepare_result;
typedef struct drakkar_claim_status drakkar_claim_status;

/* ---- claims, as callbacks see them ---- */

typedef struct drakkar_allocated_device {
  const char* request; /* "gpu", or "gpu/small" for a subrequest */
  const char* pool;
  const char* device;
  const char* share_id; /* NULL if the device is not shared */
} drakkar_allocated_device;

const char* drakkar_claim_namespace(const drakkar_claim* claim);
const char* drakkar_claim_name(const drakkar_claim* claim);
const char* drakkar_claim_uid(const drakkar_claim* claim);
/* The whole ResourceClaim as JSON. */
const char* drakkar_claim_json(const drakkar_claim* claim);
/* The devices of this driver that are allocated to the claim. */
size_t drakkar_claim_device_count(const drakkar_claim* claim);
drakkar_allocated_device drakkar_claim_device(const drakkar_claim* claim, size_t index);
/* The UIDs of the pods it is reserved for; NULL if the index is out of range. */
size_t drakkar_claim_pod_count(const drakkar_claim* claim);
const char* drakkar_claim_pod_uid(const drakkar_claim* claim, size_t index);

/* Adds a prepared device with the CDI ids that containers need for it. */
int drakkar_prepare_result_add_device(drakkar_prepare_result* result,
                                      const drakkar_allocated_device* device,
                                      const char* const* cdi_ids, size_t cdi_id_count);

/* Metadata of the most recently added device (KEP-5304); ignored without enable_device_metadata.
 * If none of these is called, its metadata is deferred: containers find an empty file until
 * drakkar_driver_update_metadata. They fail if no device was added or a value is NULL. */
int drakkar_prepare_result_set_string(drakkar_prepare_result* result, const char* attribute,
                                      const char* value);
int drakkar_prepare_result_set_version(drakkar_prepare_result* result, const char* attribute,
                                       const char* value);
int drakkar_prepare_result_set_int(drakkar_prepare_result* result, const char* attribute,
                                   int64_t value);
int drakkar_prepare_result_set_bool(drakkar_prepare_result* result, const char* attribute,
                                    int value);
int drakkar_prepare_result_set_strings(drakkar_prepare_result* result, const char* attribute,
                                       const char* const* values, size_t count);
int drakkar_prepare_result_set_versions(drakkar_prepare_result* result, const char* attribute,
                                        const char* const* values, size_t count);
int drakkar_prepare_result_set_ints(drakkar_prepare_result* result, const char* attribute,
                                    const int64_t* values, size_t count);
int drakkar_prepare_result_set_bools(drakkar_prepare_result* result, const char* attribute,
                                     const int* values, size_t count);
/* `interface_name` and `hardware_address` may be NULL; IPs are in CIDR form. */
int drakkar_prepare_result_set_network(drakkar_prepare_result* result, const char* interface_name,
                                       const char* const* ips, size_t ip_count,
                                       const char* hardware_address);
/* The device has no metadata, now or later: writes a document without attributes. */
int drakkar_prepare_result_set_nothing(drakkar_prepare_result* result);

/* The claims of one call of the node, for the callbacks that handle all of them at once. */
typedef struct drakkar_prepare_item {
  const drakkar_claim* claim;
  drakkar_prepare_result* result;
  int failed; /* set to nonzero, and set `error`, to fail only this claim */
  drakkar_error error;
} drakkar_prepare_item;

typedef struct drakkar_unprepare_item {
  const char* claim_namespace;
  const char* claim_name;
  const char* claim_uid;
  int failed;
  drakkar_error error;
} drakkar_unprepare_item;

/* ---- answers that take longer than a callback ---- */

/* One claim that start_prepare or start_unprepare was called for. The driver owns the handle until
 * it frees it, and may use it on any thread, one at a time. Answer it once with ..._succeed or
 * ..._fail; answers to different claims may come in any order. An answer fails, without any other
 * effect, if the claim was answered before (handle_error is called as well) or the driver has
 * stopped. Freeing a handle that was not answered fails its claim. */
typedef struct drakkar_prepare_call drakkar_prepare_call;
typedef struct drakkar_unprepare_call drakkar_unprepare_call;

/* Valid until the handle is freed. */
const drakkar_claim* drakkar_prepare_call_claim(const drakkar_prepare_call* call);
/* The devices to answer with; NULL once the call was answered. */
drakkar_prepare_result* drakkar_prepare_call_result(drakkar_prepare_call* call);
int drakkar_prepare_call_succeed(drakkar_prepare_call* call, drakkar_error* error);
/* The pod's events show the message. */
int drakkar_prepare_call_fail(drakkar_prepare_call* call, const char* message,
                              drakkar_error* error);
void drakkar_prepare_call_free(drakkar_prepare_call* call); /* NULL is allowed */

const char* drakkar_unprepare_call_namespace(const drakkar_unprepare_call* call);
const char* drakkar_unprepare_call_name(const drakkar_unprepare_call* call);
const char* drakkar_unprepare_call_uid(const drakkar_unprepare_call* call);
int drakkar_unprepare_call_succeed(drakkar_unprepare_call* call, drakkar_error* error);
int drakkar_unprepare_call_fail(drakkar_unprepare_call* call, const char* message,
                                drakkar_error* error);
void drakkar_unprepare_call_free(drakkar_unprepare_call* call); /* NULL is allowed */

/* ---- pods, as reported by the container runtime ---- */

const char* drakkar_pod_id(const drakkar_pod* pod); /* of the sandbox */
const char* drakkar_pod_name(const drakkar_pod* pod);
const char* drakkar_pod_namespace(const drakkar_pod* pod);
const char* drakkar_pod_uid(const drakkar_pod* pod);
size_t drakkar_pod_ip_count(const drakkar_pod* pod);
const char* drakkar_pod_ip(const drakkar_pod* pod, size_t index);             /* NULL if absent */
const char* drakkar_pod_label(const drakkar_pod* pod, const char* name);      /* NULL if absent */
const char* drakkar_pod_annotation(const drakkar_pod* pod, const char* name); /* NULL if absent */
/* The path of a namespace, for example "network"; NULL if it is unknown or the host's. */
const char* drakkar_pod_linux_namespace(const drakkar_pod* pod, const char* type);

/* ---- the driver ---- */

typedef struct drakkar_driver_options {
  /* sizeof(drakkar_driver_options). The struct may grow at its end: for a program compiled with
   * an older header, the missing members count as 0. */
  size_t size;
  const char* driver_name;
  const char* node_name;
  const char* kubeconfig;     /* NULL: the service account of the pod */
  const char* registry_dir;   /* NULL: /var/lib/kubelet/plugins_registry */
  const char* plugin_dir;     /* NULL: plugins/<driver> next to the registry */
  const char* pod_uid;        /* NULL: no rolling updates */
  const char* http_endpoint;  /* NULL: no /healthz, /readyz, /metrics */
  const char* log_level;      /* NULL: info */
  const char* logging_format; /* NULL: text; or json */
  int health_service;         /* nonzero: drakkar_driver_report_health may be called */
  const char* cdi_dir;        /* NULL: /var/run/cdi; for enable_device_metadata */
  int enable_device_metadata; /* value of --enable-device-metadata */
  int taint_unhealthy;        /* nonzero: taint unhealthy devices; requires health_service */
  const char* taint_key;      /* NULL: <driver>/unhealthy */
  const char* taint_effect;   /* NULL: NoSchedule */
  /* For devices that need no preparation on a node: no sockets are created, `prepare` and
   * `unprepare` may be NULL, and pools say which nodes can reach them. node_name must be NULL. */
  int without_node;
  const char* pool_name;  /* if set, the only pool that this driver manages */
  const char* nri_socket; /* NULL: /var/run/nri/nri.sock; used with pod callbacks */

  void* user_data; /* passed to every callback */
  /* Prepares the devices of a claim. If it is called again for the same claim, it must return
   * the same result. Nonzero fails the claim with the message in `error`. */
  int (*prepare)(void* user_data, const drakkar_claim* claim, drakkar_prepare_result* result,
                 drakkar_error* error);
  /* Undoes the preparation. Must succeed for an unknown claim. */
  int (*unprepare)(void* user_data, const char* claim_namespace, const char* claim_name,
                   const char* claim_uid, drakkar_error* error);
  /* The same for all claims of a call at once; used instead if set. Nonzero fails all of them
   * with the message in `error`. */
  int (*prepare_all)(void* user_data, drakkar_prepare_item* items, size_t count,
                     drakkar_error* error);
  int (*unprepare_all)(void* user_data, drakkar_unprepare_item* items, size_t count,
                       drakkar_error* error);
  /* Called for background failures; may be NULL. If the failure is not recoverable, the process
   * should exit. */
  void (*handle_error)(void* user_data, const char* message, int recoverable);

  /* Pods of the container runtime, through NRI. Any of these may be NULL; if all are, the driver
   * does not register with NRI. No container of the pod starts before run_pod_sandbox returns,
   * so call drakkar_driver_update_metadata there. Nonzero from run_pod_sandbox fails the pod's
   * start with the message in `error`; for the others the runtime logs it. */
  int (*run_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                         drakkar_error* error);
  int (*stop_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                          drakkar_error* error);
  int (*remove_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                            drakkar_error* error);
  /* Called for each pod that already existed when the driver registered with the container runtime,
   * every time it registers: the driver may have missed its run_pod_sandbox. Failures reach
   * handle_error. */
  int (*running_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                             drakkar_error* error);

  /* Starts preparing or unpreparing a claim and returns at once; the answer follows from any
   * thread. Used instead of the callbacks above if set. There is at most one unanswered call per
   * claim: the node's further calls for it wait, those for other claims do not. The node gives up
   * on a call after its own timeout and calls again, so a claim that is never answered never
   * gets its devices. */
  void (*start_prepare)(void* user_data, drakkar_prepare_call* call);
  void (*start_unprepare)(void* user_data, drakkar_unprepare_call* call);
} drakkar_driver_options;

/* Parses the standard flags of a driver, including --enable-device-metadata: removes them from
 * the command line (`--flag value`, `--flag=value`), sets the options, and leaves the rest in
 * `argv` with an updated `*argc`; stops at `--`. NODE_NAME, POD_UID and KUBECONFIG fill options
 * that are still NULL. Options point into `argv` and the environment. */
int drakkar_driver_parse_flags(drakkar_driver_options* options, int* argc, char** argv,
                               drakkar_error* error);
/* A description of these flags, for help texts. */
const char* drakkar_driver_flags_help(void);

/* Registers with the node and serves its calls. Freed by drakkar_driver_stop. */
drakkar_driver* drakkar_driver_start(const drakkar_driver_options* options, drakkar_error* error);
/* Closes the sockets and waits for the thread; devices stay published. NULL is allowed. */
void drakkar_driver_stop(drakkar_driver* driver);
/* Nonzero once a node has registered the driver. */
int drakkar_driver_is_registered(drakkar_driver* driver);
/* Nonzero while the driver is registered as an NRI plugin with the container runtime. */
int drakkar_driver_is_nri_registered(drakkar_driver* driver);

/* ---- devices ---- */

drakkar_resources* drakkar_resources_new(void); /* freed by drakkar_resources_free */
void drakkar_resources_free(drakkar_resources* resources);
/* Adds a device to a pool unless it exists. The setters below need an existing device. */
int drakkar_resources_add_device(drakkar_resources* resources, const char* pool,
                                 const char* device);
int drakkar_resources_set_string(drakkar_resources* resources, const char* pool, const char* device,
                                 const char* attribute, const char* value);
int drakkar_resources_set_version(drakkar_resources* resources, const char* pool,
                                  const char* device, const char* attribute, const char* value);
int drakkar_resources_set_int(drakkar_resources* resources, const char* pool, const char* device,
                              const char* attribute, int64_t value);
int drakkar_resources_set_bool(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, int value);
int drakkar_resources_set_strings(drakkar_resources* resources, const char* pool,
                                  const char* device, const char* attribute,
                                  const char* const* values, size_t count);
int drakkar_resources_set_versions(drakkar_resources* resources, const char* pool,
                                   const char* device, const char* attribute,
                                   const char* const* values, size_t count);
int drakkar_resources_set_ints(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, const int64_t* values, size_t count);
int drakkar_resources_set_bools(drakkar_resources* resources, const char* pool, const char* device,
                                const char* attribute, const int* values, size_t count);
int drakkar_resources_set_capacity(drakkar_resources* resources, const char* pool,
                                   const char* device, const char* name, const char* quantity);
/* Sets pciBusID, pcieRoot and numaNode of a PCI device of this machine. */
int drakkar_resources_set_pci(drakkar_resources* resources, const char* pool, const char* device,
                              const char* bus_id, drakkar_error* error);

/* `effect` is "NoSchedule", "NoExecute" or "None"; `value` may be NULL. */
int drakkar_resources_add_taint(drakkar_resources* resources, const char* pool, const char* device,
                                const char* key, const char* value, const char* effect);
/* Conditions that must be true before a pod with the device is bound, and failure conditions
 * that end the wait (KEP-5007); see drakkar_driver_apply_claim_status. */
int drakkar_resources_set_binding(drakkar_resources* resources, const char* pool,
                                  const char* device, int binds_to_node,
                                  const char* const* conditions, size_t condition_count,
                                  const char* const* failure_conditions,
                                  size_t failure_condition_count);
/* Further members of the API's Device, as a JSON object; they take precedence over the setters. */
int drakkar_resources_set_json(drakkar_resources* resources, const char* pool, const char* device,
                               const char* json, drakkar_error* error);
/* Makes the pool, which is created if needed, reachable from all nodes, or from those of a
 * core/v1 NodeSelector (JSON). For drivers without a node. */
int drakkar_resources_set_all_nodes(drakkar_resources* resources, const char* pool);
int drakkar_resources_set_node_selector(drakkar_resources* resources, const char* pool,
                                        const char* json, drakkar_error* error);
/* Node operations that are skipped for the devices of the pool (KEP-5945):
 * "NodePrepareResources", "NodeUnprepareResources" or "*". */
int drakkar_resources_skip_node_operations(drakkar_resources* resources, const char* pool,
                                           const char* const* operations, size_t count);

/* Makes `resources` the complete published state; the caller keeps the handle. Returns once it
 * is accepted; later failures reach handle_error. */
int drakkar_driver_publish(drakkar_driver* driver, const drakkar_resources* resources,
                           drakkar_error* error);

/* ---- health ---- */

typedef enum drakkar_health {
  DRAKKAR_HEALTH_UNKNOWN = 0,
  DRAKKAR_HEALTH_HEALTHY = 1,
  DRAKKAR_HEALTH_UNHEALTHY = 2
} drakkar_health;

typedef struct drakkar_device_health {
  const char* pool;
  const char* device;
  drakkar_health health;
  const char* message;     /* may be NULL */
  int64_t timeout_seconds; /* expires to Unknown unless repeated; 0: 30 s */
  int64_t last_updated;    /* seconds since 1970; 0: now */
} drakkar_device_health;

/* Reports changes; other devices keep their state. Reports are repeated before they expire. */
int drakkar_driver_report(drakkar_driver* driver, const drakkar_device_health* devices,
                          size_t count, drakkar_error* error);
/* Stops repeating the health of a removed device. */
int drakkar_driver_forget_health(drakkar_driver* driver, const char* pool, const char* device);
/* The same for one device. `message` may be NULL. */
int drakkar_driver_report_health(drakkar_driver* driver, const char* pool, const char* device,
                                 drakkar_health health, const char* message, drakkar_error* error);

/* ---- device metadata after prepare ---- */

drakkar_prepare_result* drakkar_prepare_result_new(void); /* freed by drakkar_prepare_result_free */
void drakkar_prepare_result_free(drakkar_prepare_result* result);

/* Makes `devices` the metadata of the request, for running containers as well. `claim_uid` may
 * be NULL. Fails without changing anything if this driver did not prepare the request or has
 * unprepared it, if a device is not allocated for it, or if an attribute is invalid. Works after
 * a restart of the driver. */
int drakkar_driver_update_metadata(drakkar_driver* driver, const char* claim_namespace,
                                   const char* claim_name, const char* claim_uid,
                                   const char* request, const drakkar_prepare_result* devices,
                                   drakkar_error* error);

/* A prepared request that can be updated. Valid during the callback; members may be added at the
 * end. */
typedef struct drakkar_prepared_request {
  const char* claim_namespace;
  const char* claim_name;
  const char* claim_uid;
  const char* request;
  const drakkar_allocated_device* devices;
  size_t device_count;
  const char* const* pod_uids; /* pods that the claim was reserved for when it was prepared */
  size_t pod_count;
  int has_metadata; /* 0 if the metadata is deferred and containers still find an empty file */
} drakkar_prepared_request;

/* Calls `each` for every such request, prepared by this or an earlier run of the driver. */
typedef void (*drakkar_request_callback)(void* user_data, const drakkar_prepared_request* request);
int drakkar_driver_prepared_requests(drakkar_driver* driver, drakkar_request_callback each,
                                     void* user_data, drakkar_error* error);

/* ---- claim status ---- */

/* The status of this driver's devices in the claim's status.devices. */
drakkar_claim_status* drakkar_claim_status_new(void); /* freed by drakkar_claim_status_free */
void drakkar_claim_status_free(drakkar_claim_status* status);
/* `share_id` may be NULL. The functions below apply to the most recently added device. */
int drakkar_claim_status_add_device(drakkar_claim_status* status, const char* pool,
                                    const char* device, const char* share_id);
/* `value` is "True", "False" or "Unknown"; `reason` is a CamelCase word; `message` may be NULL. */
int drakkar_claim_status_add_condition(drakkar_claim_status* status, const char* type,
                                       const char* value, const char* reason, const char* message);
/* Any JSON object of at most 10 KiB. */
int drakkar_claim_status_set_data(drakkar_claim_status* status, const char* json,
                                  drakkar_error* error);
int drakkar_claim_status_set_network(drakkar_claim_status* status, const char* interface_name,
                                     const char* const* ips, size_t ip_count,
                                     const char* hardware_address);

/* Makes `status` this driver's part of the claim's status by server-side apply, in the
 * background. Fields that it no longer sets are removed; those of others stay. The caller keeps
 * the handle. `done` is called with NULL or an error message; if `done` is NULL, failures reach
 * handle_error. */
typedef void (*drakkar_done_callback)(void* user_data, const char* failure);
int drakkar_driver_apply_claim_status(drakkar_driver* driver, const char* claim_namespace,
                                      const char* claim_name, const char* claim_uid,
                                      const drakkar_claim_status* status,
                                      drakkar_done_callback done, void* done_data,
                                      drakkar_error* error);

/* The same for one condition of one device. Other conditions and devices of this driver in the
 * claim are removed from the status. */
int drakkar_driver_set_condition(drakkar_driver* driver, const char* claim_namespace,
                                 const char* claim_name, const char* claim_uid, const char* pool,
                                 const char* device, const char* type, const char* status,
                                 const char* reason, const char* message, drakkar_error* error);

/* ---- CDI ---- */

/* Validates a CDI spec (JSON) and writes it to `path` atomically. */
int drakkar_cdi_write_spec(const char* path, const char* json, drakkar_error* error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_DRIVER_H_ */
