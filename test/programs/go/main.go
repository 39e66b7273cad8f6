// A static Go guest: goroutines, timers, files, a child process, signals, an HTTP server and its client on loopback.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func goroutines() {
	var sum atomic.Int64
	var wg sync.WaitGroup
	for i := range make([]struct{}, 1000) {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			if i%100 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			sum.Add(int64(i))
		}(i)
	}
	wg.Wait()
	fmt.Println("sum", sum.Load())
	ping, pong := make(chan int), make(chan int)
	go func() {
		for v := range ping {
			pong <- v + 1
		}
		close(pong)
	}()
	v := 0
	for i := 0; i < 10000; i++ {
		ping <- v
		v = <-pong
	}
	close(ping)
	fmt.Println("ping-pong", v)
	// Every thread computes; the collector stops them by signal.
	results := make([][32]byte, 8)
	for i := range results {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			b := []byte{byte(i)}
			for k := 0; k < 20000; k++ {
				h := sha256.Sum256(b)
				b = append([]byte{}, h[:]...)
			}
			copy(results[i][:], b)
		}(i)
	}
	for i := 0; i < 5; i++ {
		runtime.GC()
	}
	wg.Wait()
	fmt.Printf("hashes %x\n", results[0][:4])
	blocked := make([]chan bool, 20)
	for i := range blocked {
		blocked[i] = make(chan bool)
		go func(c chan bool) {
			runtime.LockOSThread()
			<-c
			c <- true
		}(blocked[i])
	}
	for _, c := range blocked {
		c <- true
		<-c
	}
	fmt.Println("locked threads", len(blocked))
}

func server() {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Query().Get("n")) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		must(err)
		s := &http.Server{Handler: mux}
		go s.Serve(l)
		base := "http://" + l.Addr().String()
		var wg sync.WaitGroup
		var good atomic.Int32
		for i := 0; i < 50; i++ {
			wg.Add(1)
			go func(i int) {
				defer wg.Done()
				r, err := http.Get(fmt.Sprintf("%s/hello?n=%d", base, i))
				must(err)
				b, err := io.ReadAll(r.Body)
				must(err)
				r.Body.Close()
				if string(b) == fmt.Sprintf("hello %d", i) {
					good.Add(1)
				}
			}(i)
		}
		wg.Wait()
		big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
		r, err := http.Post(base+"/echo", "application/octet-stream", bytes.NewReader(big))
		must(err)
		b, err := io.ReadAll(r.Body)
		must(err)
		fmt.Println("good", good.Load(), "echoed", len(b), bytes.Equal(b, big))
		http.DefaultClient.CloseIdleConnections()
		must(s.Close())
		_, err = net.DialTimeout("tcp", l.Addr().String(), time.Second)
		fmt.Println("refused", err != nil)
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	c, err := net.Dial("udp", u.LocalAddr().String())
	must(err)
	c.Write([]byte("datagram"))
	b := make([]byte, 100)
	u.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, _, err := u.ReadFrom(b)
	must(err)
	fmt.Println("udp", string(b[:n]))
	u.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, _, err = u.ReadFrom(b)
	ne, ok := err.(net.Error)
	fmt.Println("deadline", ok && ne.Timeout())
}

func files() {
	d, err := os.MkdirTemp(".", "go")
	must(err)
	for i := 0; i < 20; i++ {
		must(os.WriteFile(filepath.Join(d, fmt.Sprint("f", i)), bytes.Repeat([]byte{byte(i)}, i*1000), 0o600))
	}
	var total int64
	must(filepath.Walk(d, func(p string, i os.FileInfo, err error) error {
		must(err)
		if i.Mode().IsRegular() {
			total += i.Size()
		}
		return nil
	}))
	fmt.Println("bytes", total)
	must(os.RemoveAll(d))
	_, err = os.Stat(d)
	fmt.Println("gone", os.IsNotExist(err))
}

func processes() {
	out, err := exec.Command("/bin/sh", "-c", "echo from the shell; exit 3").Output()
	fmt.Printf("%s%v\n", out, err)
	cmd := exec.Command("/bin/cat")
	cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("line\n"), 50000))
	out, err = cmd.Output()
	must(err)
	fmt.Println("cat", len(out))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	fmt.Println("killed:", exec.CommandContext(ctx, "/bin/sleep", "100").Run())
	c := make(chan os.Signal, 5)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGTERM)
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM} {
		must(syscall.Kill(os.Getpid(), s))
		fmt.Println("signal", <-c)
	}
	defer func() { fmt.Println("recovered:", recover()) }()
	var p *int
	*p = 1
}

func main() {
	goroutines()
	server()
	files()
	processes()
	_, err := net.LookupHost("localhost")
	fmt.Println("localhost", err == nil)
	os.Exit(7)
}
