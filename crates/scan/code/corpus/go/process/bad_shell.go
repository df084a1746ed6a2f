package main

import "os/exec"

func build(target string) error {
	return exec.Command("bash", "-c", "make "+target).Run()
}
