// Prints the feature gates of Kubernetes as its registry has them, by release: what is on by default,
// what is locked, what needs what.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features"
)

type gate struct {
	Default bool     `json:"default"`
	Locked  bool     `json:"locked"`
	Needs   []string `json:"needs"`
}

func main() {
	releases := map[string]map[string]gate{}
	for _, release := range os.Args[1:] {
		gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
		if err := gates.SetEmulationVersion(version.MustParse(release)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		needs := gates.Dependencies()
		known := map[string]gate{}
		for name, spec := range gates.GetAll() {
			if spec.PreRelease == featuregate.PreAlpha {
				continue // not known to this release
			}
			entry := gate{Default: spec.Default, Locked: spec.LockToDefault, Needs: []string{}}
			for _, needed := range needs[name] {
				entry.Needs = append(entry.Needs, string(needed))
			}
			sort.Strings(entry.Needs)
			known[string(name)] = entry
		}
		releases[release] = known
	}
	if err := json.NewEncoder(os.Stdout).Encode(releases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
