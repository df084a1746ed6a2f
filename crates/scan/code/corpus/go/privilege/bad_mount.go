package main

import "syscall"

func main() {
	syscall.Mount("/dev/sda1", "/mnt", "ext4", 0, "")
}
