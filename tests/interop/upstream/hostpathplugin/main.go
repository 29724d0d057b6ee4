// A stand-in for the CSI hostpath driver in proxy mode, the only one that the DRA tests use: each connection to the
// unix socket is joined with one connection to the TCP port.
// usage: hostpathplugin --endpoint=PATH --proxy-endpoint=tcp://:PORT
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"strings"
)

func join(a, b net.Conn) {
	done := make(chan struct{}, 2)
	move := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go move(a, b)
	go move(b, a)
	<-done
	a.Close()
	b.Close()
}

func main() {
	endpoint := flag.String("endpoint", "", "path of the unix socket")
	proxy := flag.String("proxy-endpoint", "", "tcp://:PORT")
	flag.Int("v", 0, "has no effect")
	flag.Parse()
	if *endpoint == "" || *proxy == "" {
		log.Fatal("this is the proxy mode only: needs --endpoint and --proxy-endpoint")
	}
	path := strings.TrimPrefix(*endpoint, "unix://")
	_ = os.Remove(path)
	inside, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	outside, err := net.Listen("tcp", strings.TrimPrefix(*proxy, "tcp://"))
	if err != nil {
		log.Fatal(err)
	}
	for {
		a, err := inside.Accept()
		if err != nil {
			log.Fatal(err)
		}
		b, err := outside.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go join(a, b)
	}
}
