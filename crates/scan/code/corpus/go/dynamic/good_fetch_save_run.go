package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	answer, _ := http.Get("https://data.example/data.tgz")
	file, _ := os.Create("/tmp/data.tgz")
	io.Copy(file, answer.Body)
	syscall.Mmap(int(file.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	file.Close()
	exec.Command("tar", "xf", "/tmp/data.tgz").Run()
}
