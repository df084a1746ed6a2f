package main

import "os"

func main() {
	os.WriteFile("out/schedule.txt", []byte("daily\n"), 0o644)
}
