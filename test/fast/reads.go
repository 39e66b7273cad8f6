// Reads a file of the system again and again, by several goroutines at once.
package main

import (
	"os"
	"sync"
)

func main() {
	var all sync.WaitGroup
	for n := 0; n < 4; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 1000; i++ {
				if _, err := os.ReadFile("/etc/passwd"); err != nil {
					panic(err)
				}
			}
		}()
	}
	all.Wait()
}
