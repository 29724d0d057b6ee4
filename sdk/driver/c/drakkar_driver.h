/* The driver SDK for C (C11) and for every language that can call C.
 *
 * Ownership: a handle that a function returns belongs to the caller, who frees it with the function
 * named beside it. Handles and texts that a callback gets are lent: they are valid until it
 * returns. Texts that go in are copied.
 *
 * Threads: a driver runs on a thread of its own. Callbacks are called there, one at a time, and
 * should not take longer than a few seconds. All functions may be called from any thread, and from
 * callbacks; only drakkar_driver_stop must not be called from a callback. A drakkar_resources
 * handle must not be used from two threads at once.
 *
 * Errors: functions that can fail return 0 or a handle on success and nonzero or NULL on failure;
 * `error` may be NULL, else it then holds one sentence. No exception leaves this library.
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
  char message[DRAKKAR_ERROR_BYTES]; /* zero-terminated, cut off where it is too long */
} drakkar_error;

typedef struct drakkar_driver drakkar_driver;
typedef struct drakkar_resources drakkar_resources;
typedef struct drakkar_claim drakkar_claim; /* lent to callbacks */
typedef struct drakkar_pod drakkar_pod;     /* lent to callbacks */
/* A list of devices with what containers are told about them: lent to callbacks of prepare, made by
 * the driver itself for drakkar_driver_update_metadata. */
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
/* The devices of this driver that the claim was given. */
size_t drakkar_claim_device_count(const drakkar_claim* claim);
drakkar_allocated_device drakkar_claim_device(const drakkar_claim* claim, size_t index);
/* The UIDs of the pods it is reserved for; NULL: no such. */
size_t drakkar_claim_pod_count(const drakkar_claim* claim);
const char* drakkar_claim_pod_uid(const drakkar_claim* claim, size_t index);

/* Adds a device that is ready, with the CDI ids containers need for it. */
int drakkar_prepare_result_add_device(drakkar_prepare_result* result,
                                      const drakkar_allocated_device* device,
                                      const char* const* cdi_ids, size_t cdi_id_count);

/* What containers are told about the device added last (KEP-5304); looked at only with
 * enable_device_metadata. Without any of these its metadata is deferred: containers find an empty
 * file until drakkar_driver_update_metadata. They fail if no device was added, or a value is NULL.
 */
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
/* There is nothing to tell, now and later: a document without attributes. */
int drakkar_prepare_result_set_nothing(drakkar_prepare_result* result);

/* Several claims of one call of the node, for the callbacks that take them all. */
typedef struct drakkar_prepare_item {
  const drakkar_claim* claim;
  drakkar_prepare_result* result;
  int failed; /* set it to nonzero, and `error`, to fail this claim and no other */
  drakkar_error error;
} drakkar_prepare_item;

typedef struct drakkar_unprepare_item {
  const char* claim_namespace;
  const char* claim_name;
  const char* claim_uid;
  int failed;
  drakkar_error error;
} drakkar_unprepare_item;

/* ---- pods, as the container runtime tells of them ---- */

const char* drakkar_pod_id(const drakkar_pod* pod); /* of the sandbox */
const char* drakkar_pod_name(const drakkar_pod* pod);
const char* drakkar_pod_namespace(const drakkar_pod* pod);
const char* drakkar_pod_uid(const drakkar_pod* pod);
size_t drakkar_pod_ip_count(const drakkar_pod* pod);
const char* drakkar_pod_ip(const drakkar_pod* pod, size_t index);             /* NULL: no such */
const char* drakkar_pod_label(const drakkar_pod* pod, const char* name);      /* NULL: no such */
const char* drakkar_pod_annotation(const drakkar_pod* pod, const char* name); /* NULL: no such */
/* The path of a namespace, "network" for example; NULL: not told, or the host's. */
const char* drakkar_pod_linux_namespace(const drakkar_pod* pod, const char* type);

/* ---- the driver ---- */

typedef struct drakkar_driver_options {
  /* sizeof(drakkar_driver_options): lets the struct grow at its end. A program that was compiled
   * with an older header has a smaller one; what it does not know of is as if it were 0. */
  size_t size;
  const char* driver_name;
  const char* node_name;
  const char* kubeconfig;     /* NULL: the service account of the pod */
  const char* registry_dir;   /* NULL: /var/lib/kubelet/plugins_registry */
  const char* plugin_dir;     /* NULL: plugins/<driver> beside the registry */
  const char* pod_uid;        /* NULL: no rolling updates */
  const char* http_endpoint;  /* NULL: no /healthz, /readyz, /metrics */
  const char* log_level;      /* NULL: info */
  const char* logging_format; /* NULL: text; or json */
  int health_service;         /* nonzero: drakkar_driver_report_health may be called */
  const char* cdi_dir;        /* NULL: /var/run/cdi; for enable_device_metadata */
  int enable_device_metadata; /* the value of the driver's flag of that name */
  int taint_unhealthy;        /* nonzero: unhealthy devices are tainted; needs health_service */
  const char* taint_key;      /* NULL: <driver>/unhealthy */
  const char* taint_effect;   /* NULL: NoSchedule */
  /* For devices that need nothing on a node: no sockets are made, `prepare` and `unprepare` may be
   * NULL, and pools say which nodes reach them. node_name must be NULL. */
  int without_node;
  const char* pool_name; /* with it: the only pool this driver answers for; others are left alone */
  const char* nri_socket; /* NULL: /var/run/nri/nri.sock; looked at with a callback for pods */

  void* user_data; /* handed to every callback */
  /* Makes the devices of a claim ready; called again for the same claim, it must give the same
   * answer. Nonzero fails the claim with the sentence in `error`. */
  int (*prepare)(void* user_data, const drakkar_claim* claim, drakkar_prepare_result* result,
                 drakkar_error* error);
  /* Undoes it. A claim that is not known has succeeded. */
  int (*unprepare)(void* user_data, const char* claim_namespace, const char* claim_name,
                   const char* claim_uid, drakkar_error* error);
  /* The same for all claims of a call at once; used instead where they are set. Nonzero fails all
   * of them with the sentence in `error`. */
  int (*prepare_all)(void* user_data, drakkar_prepare_item* items, size_t count,
                     drakkar_error* error);
  int (*unprepare_all)(void* user_data, drakkar_unprepare_item* items, size_t count,
                       drakkar_error* error);
  /* Something failed in the background; may be NULL. If it is not recoverable the process should
   * end. */
  void (*handle_error)(void* user_data, const char* message, int recoverable);

  /* The container runtime's pods, through NRI; any may be NULL, and with all of them NULL the
   * driver does not register there. No container of the pod starts before run_pod_sandbox has
   * returned: the place to call drakkar_driver_update_metadata. Nonzero fails the pod's start with
   * the sentence in `error`; for the others it is logged by the runtime. */
  int (*run_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                         drakkar_error* error);
  int (*stop_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                          drakkar_error* error);
  int (*remove_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                            drakkar_error* error);
  /* A pod that was there already when the driver registered with the runtime, each time it does:
   * its run_pod_sandbox may have gone unheard. Failures reach handle_error. */
  int (*running_pod_sandbox)(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                             drakkar_error* error);
} drakkar_driver_options;

/* The flags every driver has, --enable-device-metadata among them: takes those it knows out of the
 * command line (`--flag value`, `--flag=value`), sets the options, and leaves the rest in `argv`
 * with
 * `*argc` set anew; `--` ends it. NODE_NAME, POD_UID and KUBECONFIG fill what is still NULL.
 * Options point into `argv` and the environment. */
int drakkar_driver_parse_flags(drakkar_driver_options* options, int* argc, char** argv,
                               drakkar_error* error);
/* Their description, for a help text. */
const char* drakkar_driver_flags_help(void);

/* Registers with the node and serves its calls. Freed by drakkar_driver_stop. */
drakkar_driver* drakkar_driver_start(const drakkar_driver_options* options, drakkar_error* error);
/* Closes the sockets and waits for the thread; published devices stay. NULL is fine. */
void drakkar_driver_stop(drakkar_driver* driver);
/* Nonzero once a node has taken the driver in. */
int drakkar_driver_is_registered(drakkar_driver* driver);
/* Nonzero while the driver is an NRI plugin of the container runtime. */
int drakkar_driver_is_nri_registered(drakkar_driver* driver);

/* ---- devices ---- */

drakkar_resources* drakkar_resources_new(void); /* freed by drakkar_resources_free */
void drakkar_resources_free(drakkar_resources* resources);
/* A device of a pool, added if it is new. The setters below name one that is there. */
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
/* pciBusID, pcieRoot and numaNode of a PCI device of this machine. */
int drakkar_resources_set_pci(drakkar_resources* resources, const char* pool, const char* device,
                              const char* bus_id, drakkar_error* error);

/* `effect` is "NoSchedule", "NoExecute" or "None"; `value` may be NULL. */
int drakkar_resources_add_taint(drakkar_resources* resources, const char* pool, const char* device,
                                const char* key, const char* value, const char* effect);
/* Conditions that must come true before a pod with the device is bound, and those that give it up
 * (KEP-5007); see drakkar_driver_apply_claim_status. */
int drakkar_resources_set_binding(drakkar_resources* resources, const char* pool,
                                  const char* device, int binds_to_node,
                                  const char* const* conditions, size_t condition_count,
                                  const char* const* failure_conditions,
                                  size_t failure_condition_count);
/* Further members of the API's Device, as a JSON object; they win over the setters. */
int drakkar_resources_set_json(drakkar_resources* resources, const char* pool, const char* device,
                               const char* json, drakkar_error* error);
/* The pool, made if it is new: reached from all nodes, or from those of a core/v1 NodeSelector
 * (JSON). For drivers without a node. */
int drakkar_resources_set_all_nodes(drakkar_resources* resources, const char* pool);
int drakkar_resources_set_node_selector(drakkar_resources* resources, const char* pool,
                                        const char* json, drakkar_error* error);
/* Nodes need not call the driver for devices of the pool (KEP-5945): of "NodePrepareResources",
 * "NodeUnprepareResources", "*". */
int drakkar_resources_skip_node_operations(drakkar_resources* resources, const char* pool,
                                           const char* const* operations, size_t count);

/* Makes `resources` the complete published state; the handle stays the caller's. Returns once it is
 * accepted: later failures reach handle_error. */
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
  int64_t timeout_seconds; /* when the node takes it for unknown unless repeated; 0: 30 s */
  int64_t last_updated;    /* seconds since 1970; 0: now */
} drakkar_device_health;

/* News about devices, others keep their state; repeated to the node before they expire. */
int drakkar_driver_report(drakkar_driver* driver, const drakkar_device_health* devices,
                          size_t count, drakkar_error* error);
/* A device that is gone: nothing is repeated about it any more. */
int drakkar_driver_forget_health(drakkar_driver* driver, const char* pool, const char* device);
/* The same for one device. `message` may be NULL. */
int drakkar_driver_report_health(drakkar_driver* driver, const char* pool, const char* device,
                                 drakkar_health health, const char* message, drakkar_error* error);

/* ---- device metadata after prepare ---- */

drakkar_prepare_result* drakkar_prepare_result_new(void); /* freed by drakkar_prepare_result_free */
void drakkar_prepare_result_free(drakkar_prepare_result* result);

/* Makes `devices` what containers read for the request, those that run already included.
 * `claim_uid` may be NULL. Refused for a request that this driver did not prepare or has
 * unprepared, for devices that it was not given there, and for attributes the API would not take;
 * then nothing has changed. Works after a restart of the driver. */
int drakkar_driver_update_metadata(drakkar_driver* driver, const char* claim_namespace,
                                   const char* claim_name, const char* claim_uid,
                                   const char* request, const drakkar_prepare_result* devices,
                                   drakkar_error* error);

/* A request that was prepared and can be updated. Everything is lent; further members may come at
 * the end. */
typedef struct drakkar_prepared_request {
  const char* claim_namespace;
  const char* claim_name;
  const char* claim_uid;
  const char* request;
  const drakkar_allocated_device* devices;
  size_t device_count;
  const char* const*
      pod_uids; /* of the pods that the claim was reserved for when it was prepared */
  size_t pod_count;
  int has_metadata; /* 0: containers find an empty file, metadata was deferred and has not come yet
                     */
} drakkar_prepared_request;

/* Calls `each` for every such request, of this or an earlier run of the driver. */
typedef void (*drakkar_request_callback)(void* user_data, const drakkar_prepared_request* request);
int drakkar_driver_prepared_requests(drakkar_driver* driver, drakkar_request_callback each,
                                     void* user_data, drakkar_error* error);

/* ---- claim status ---- */

/* What the claim's status.devices is to say about devices of this driver. */
drakkar_claim_status* drakkar_claim_status_new(void); /* freed by drakkar_claim_status_free */
void drakkar_claim_status_free(drakkar_claim_status* status);
/* `share_id` may be NULL. The functions below are about the device added last. */
int drakkar_claim_status_add_device(drakkar_claim_status* status, const char* pool,
                                    const char* device, const char* share_id);
/* `value` is "True", "False" or "Unknown"; `reason` a word in CamelCase; `message` may be NULL. */
int drakkar_claim_status_add_condition(drakkar_claim_status* status, const char* type,
                                       const char* value, const char* reason, const char* message);
/* Any JSON object of up to 10 KiB. */
int drakkar_claim_status_set_data(drakkar_claim_status* status, const char* json,
                                  drakkar_error* error);
int drakkar_claim_status_set_network(drakkar_claim_status* status, const char* interface_name,
                                     const char* const* ips, size_t ip_count,
                                     const char* hardware_address);

/* Makes `status` this driver's part of the claim's status by server-side apply, in the background:
 * what it does not name any more is removed, what others wrote stays. The handle stays the
 * caller's. `done` is called with NULL or with what went wrong; where it is NULL failures reach
 * handle_error. */
typedef void (*drakkar_done_callback)(void* user_data, const char* failure);
int drakkar_driver_apply_claim_status(drakkar_driver* driver, const char* claim_namespace,
                                      const char* claim_name, const char* claim_uid,
                                      const drakkar_claim_status* status,
                                      drakkar_done_callback done, void* done_data,
                                      drakkar_error* error);

/* The same for one condition of one device. Other conditions and devices of this driver in the
 * claim are dropped from the status. */
int drakkar_driver_set_condition(drakkar_driver* driver, const char* claim_namespace,
                                 const char* claim_name, const char* claim_uid, const char* pool,
                                 const char* device, const char* type, const char* status,
                                 const char* reason, const char* message, drakkar_error* error);

/* ---- CDI ---- */

/* Checks a CDI spec (JSON) and puts it at `path` so that readers see the old or the new file. */
int drakkar_cdi_write_spec(const char* path, const char* json, drakkar_error* error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_DRIVER_H_ */
