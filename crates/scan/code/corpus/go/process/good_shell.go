package main

import "os/exec"

func build(target string) error {
	return exec.Command("make", target).Run()
}
