// A DRA driver as vendors write them: k8s.io/dynamic-resource-allocation/kubeletplugin does the talking,
// this handles the devices. It prints each call on a line of standard output; lines on standard input
// make it misbehave:
//
//	hold prepare|unprepare   the next calls of that kind wait
//	release                  and continue
//	fail prepare|unprepare   they fail until "work"
//	work
//	health DEVICE STATE [MESSAGE]
//
// The flags --dra, --health, --serve, --plugin-socket and --registrar-socket emulate drivers that are older,
// have no health, or consist of two processes. With --serve=common it does not use kubeletplugin (common.go).
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	cdiapi "tags.cncf.io/container-device-interface/pkg/cdi"
	cdispec "tags.cncf.io/container-device-interface/specs-go"
)

type driver struct {
	name, pool, cdi string

	mutex   sync.Mutex
	changed *sync.Cond
	held    map[string]bool
	failing map[string]bool
	health  map[string]kubeletplugin.DeviceHealth
	flips   chan struct{}

	unsupported bool // health is advertised, then refused
}

func (d *driver) enter(what string, uid types.UID) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	fmt.Println(what, uid)
	for d.held[what] {
		d.changed.Wait()
	}
	if d.failing[what] {
		return errors.New("told to fail")
	}
	return nil
}

// Specs are written and removed by the library that vendors use, in its default format: YAML.
func (d *driver) specs() (*cdiapi.Cache, error) {
	return cdiapi.NewCache(cdiapi.WithSpecDirs(d.cdi), cdiapi.WithAutoRefresh(false))
}

func (d *driver) writeSpec(uid types.UID, devices []string) error {
	cache, err := d.specs()
	if err != nil {
		return err
	}
	spec := &cdispec.Spec{
		Kind: d.name + "/device",
		Devices: []cdispec.Device{{
			Name:           "claim-" + string(uid),
			ContainerEdits: cdispec.ContainerEdits{Env: []string{"GO_DEVICES=" + strings.Join(devices, ",")}},
		}},
	}
	if spec.Version, err = cdispec.MinimumRequiredVersion(spec); err != nil {
		return err
	}
	return cache.WriteSpec(spec, cdiapi.GenerateTransientSpecName(d.name, "device", string(uid)))
}

func (d *driver) removeSpec(uid types.UID) error {
	cache, err := d.specs()
	if err != nil {
		return err
	}
	return cache.RemoveSpec(cdiapi.GenerateTransientSpecName(d.name, "device", string(uid)))
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		if err := d.enter("prepare", claim.UID); err != nil {
			results[claim.UID] = kubeletplugin.PrepareResult{Err: err}
			continue
		}
		var result kubeletplugin.PrepareResult
		var names []string
		for _, each := range claim.Status.Allocation.Devices.Results {
			if each.Driver != d.name {
				continue
			}
			names = append(names, each.Device)
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests:     []string{each.Request},
				PoolName:     each.Pool,
				DeviceName:   each.Device,
				CDIDeviceIDs: []string{fmt.Sprintf("%s/device=claim-%s", d.name, claim.UID)},
			})
		}
		if err := d.writeSpec(claim.UID, names); err != nil {
			return nil, err
		}
		results[claim.UID] = result
		fmt.Println("prepared", claim.UID)
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		if err := d.enter("unprepare", claim.UID); err != nil {
			results[claim.UID] = err
			continue
		}
		if err := d.removeSpec(claim.UID); err != nil {
			results[claim.UID] = err
			continue
		}
		results[claim.UID] = nil
		fmt.Println("unprepared", claim.UID)
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Println("error", message, err)
}

func (d *driver) report() kubeletplugin.DeviceHealthReport {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var report kubeletplugin.DeviceHealthReport
	for _, each := range d.health {
		each.LastUpdated = time.Now()
		report.Devices = append(report.Devices, each)
	}
	return report
}

func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	fmt.Println("watch")
	if d.unsupported {
		return kubeletplugin.ErrHealthNotSupported
	}
	for {
		select {
		case reports <- d.report():
		case <-ctx.Done():
			return nil
		}
		select {
		case <-d.flips:
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			fmt.Println("unwatch")
			return nil
		}
	}
}

func (d *driver) command(words []string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	switch words[0] {
	case "hold":
		d.held[words[1]] = true
	case "release":
		clear(d.held)
		d.changed.Broadcast()
	case "fail":
		d.failing[words[1]] = true
	case "work":
		clear(d.failing)
	case "health":
		device := d.health[words[1]]
		device.Health = kubeletplugin.HealthStatus(words[2])
		device.Message = strings.Join(words[3:], " ")
		d.health[words[1]] = device
		select {
		case d.flips <- struct{}{}:
		default:
		}
	}
	fmt.Println("ok", strings.Join(words, " "))
}

func tellCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	fmt.Println("rpc", info.FullMethod)
	return handler(ctx, request)
}

func tellStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	fmt.Println("rpc", info.FullMethod)
	return handler(server, stream)
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "")
	nodeName := flag.String("node-name", "", "")
	name := flag.String("driver-name", "go.example.com", "")
	registry := flag.String("registry-dir", "", "")
	plugin := flag.String("plugin-dir", "", "")
	cdi := flag.String("cdi-dir", "", "")
	podUID := flag.String("pod-uid", "", "")
	count := flag.Int("count", 4, "")
	dra := flag.String("dra", "v1,v1beta1", "versions")
	health := flag.String("health", "v1,v1alpha1", "versions, none or unsupported")
	serve := flag.String("serve", "both", "both, dra, registrar or common")
	pluginSocket := flag.String("plugin-socket", "", "")
	registrarSocket := flag.String("registrar-socket", "", "")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, directory := range []string{*plugin, *cdi} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	d := &driver{name: *name, pool: *nodeName, cdi: *cdi, held: map[string]bool{}, failing: map[string]bool{},
		health: map[string]kubeletplugin.DeviceHealth{}, flips: make(chan struct{}, 1),
		unsupported: *health == "unsupported"}
	d.changed = sync.NewCond(&d.mutex)
	var devices []resourceapi.Device
	for i := range *count {
		device := fmt.Sprintf("dev-%d", i)
		devices = append(devices, resourceapi.Device{Name: device})
		d.health[device] = kubeletplugin.DeviceHealth{PoolName: *nodeName, DeviceName: device, Health: kubeletplugin.HealthStatusHealthy}
	}
	if *serve == "common" {
		stopServer, err := serveOneSocket(d, client, filepath.Join(*registry, *name+".sock"))
		if err != nil {
			return err
		}
		defer stopServer()
	} else {
		has := func(list, version string) bool { return slices.Contains(strings.Split(list, ","), version) }
		options := []kubeletplugin.Option{
			kubeletplugin.DriverName(*name), kubeletplugin.NodeName(*nodeName), kubeletplugin.KubeClient(client),
			kubeletplugin.RegistrarDirectoryPath(*registry), kubeletplugin.PluginDataDirectoryPath(*plugin),
			kubeletplugin.RegistrarSocketFilename(*registrarSocket), kubeletplugin.PluginSocket(*pluginSocket),
			kubeletplugin.NodeV1(has(*dra, "v1")), kubeletplugin.NodeV1beta1(has(*dra, "v1beta1")),
			kubeletplugin.HealthService(*health != "none"),
			kubeletplugin.HealthV1(d.unsupported || has(*health, "v1")),
			kubeletplugin.HealthV1alpha1(d.unsupported || has(*health, "v1alpha1")),
			kubeletplugin.DRAService(*serve != "registrar"), kubeletplugin.RegistrationService(*serve != "dra"),
			kubeletplugin.GRPCInterceptor(tellCall), kubeletplugin.GRPCStreamInterceptor(tellStream),
		}
		if *podUID != "" {
			options = append(options, kubeletplugin.RollingUpdate(types.UID(*podUID)))
		}
		helper, err := kubeletplugin.Start(ctx, d, options...)
		if err != nil {
			return err
		}
		defer helper.Stop()
		if *serve != "registrar" {
			if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
				*nodeName: {Slices: []resourceslice.Slice{{Devices: devices}}},
			}}); err != nil {
				return err
			}
		}
	}
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if words := strings.Fields(lines.Text()); len(words) > 0 {
				d.command(words)
			}
		}
	}()
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
