package main

import (
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command("go", "version")
	cmd.Stdout = os.Stdout
	cmd.Run()
}
